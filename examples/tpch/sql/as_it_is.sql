SELECT * FROM source
