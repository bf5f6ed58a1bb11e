# MinIO as a user of its own: a new volume belongs to whom its folder in the image belongs to, and MinIO's own image has one of root's.
ARG IMAGE_PREFIX=
FROM ${IMAGE_PREFIX}minio/minio:RELEASE.2025-09-07T16-13-09Z

USER root
RUN mkdir /lake && chown 50000 /lake
USER 50000
