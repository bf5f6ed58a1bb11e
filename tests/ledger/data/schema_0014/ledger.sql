BEGIN TRANSACTION;
CREATE TABLE acceptances (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	pipeline VARCHAR(250) NOT NULL, 
	interval VARCHAR(250), 
	stage VARCHAR(250) NOT NULL, 
	recorded_code VARCHAR(64) NOT NULL, 
	accepted_code VARCHAR(64) NOT NULL, 
	accepted_by VARCHAR(250) NOT NULL, 
	reason TEXT NOT NULL, 
	recorded_at DATETIME NOT NULL
);
INSERT INTO "acceptances" VALUES(1,'sales',NULL,'joined','old','new','me','a comment','2024-01-02 03:04:05.678901');
CREATE TABLE acknowledgements (
	run_id VARCHAR(250) NOT NULL, 
	number BIGINT NOT NULL, 
	attempt_id VARCHAR(500) NOT NULL, 
	region VARCHAR(250) NOT NULL, 
	share VARCHAR(64), 
	asked_at DATETIME NOT NULL, 
	answered_at DATETIME, 
	answer VARCHAR(32), 
	reason VARCHAR(64), 
	CONSTRAINT acknowledgements_pkey PRIMARY KEY (run_id, number, attempt_id)
);
INSERT INTO "acknowledgements" VALUES('run-1',1,'run-1.joined.2024-01-01.1','joined',NULL,'2026-11-26 08:41:42.885000','2026-11-26 08:41:42.890000','acknowledged',NULL);
CREATE TABLE attempts (
	attempt_id VARCHAR(500) NOT NULL, 
	run_id VARCHAR(250) NOT NULL, 
	pipeline VARCHAR(250) NOT NULL, 
	interval VARCHAR(250) NOT NULL, 
	region VARCHAR(250) NOT NULL, 
	epoch BIGINT NOT NULL, 
	state VARCHAR(32) NOT NULL, 
	started_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	failure TEXT, failure_class VARCHAR(32), failure_rule TEXT, share VARCHAR(64), restore VARCHAR(100), labels JSON DEFAULT '{}' NOT NULL, 
	CONSTRAINT attempts_pkey PRIMARY KEY (attempt_id)
);
INSERT INTO "attempts" VALUES('run-1.joined.2024-01-01.1','run-1','sales','2024-01-01','joined',1,'failed','2024-01-02 03:05:05.678901','2026-11-26 08:41:42.621000','no space left','environment','disk full',NULL,NULL,'{"team": "data"}');
CREATE TABLE backfills (
	backfill_id VARCHAR(32) NOT NULL, 
	pipeline VARCHAR(250) NOT NULL, 
	asked_by VARCHAR(250) NOT NULL, 
	requested_at DATETIME NOT NULL, 
	choice JSON NOT NULL, 
	intervals JSON NOT NULL, 
	cells JSON NOT NULL, 
	CONSTRAINT backfills_pkey PRIMARY KEY (backfill_id)
);
INSERT INTO "backfills" VALUES('b1','sales','me','2024-01-02 03:04:05.678901','{"first": "2024-01-01", "last": "2024-01-02", "stages": ["joined"], "only": "all", "restore_from_stage": null}','[{"interval": "2024-01-01", "order": {"stages": ["joined", "total"], "anew": ["total"], "only_recorded": false, "as_recorded": false, "backfill": "b1"}}]','[{"interval": "2024-01-01", "stage": "joined", "ranges": [[0, 3], [7, 7]]}]');
CREATE TABLE checkpoints (
	run_id VARCHAR(250) NOT NULL, 
	number BIGINT NOT NULL, 
	pipeline VARCHAR(250) NOT NULL, 
	interval VARCHAR(250) NOT NULL, 
	"trigger" VARCHAR(32) NOT NULL, 
	state VARCHAR(32) NOT NULL, 
	triggered_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	failure TEXT, 
	bytes_written BIGINT NOT NULL, 
	bytes_referenced BIGINT NOT NULL, 
	discarded_at DATETIME, reason VARCHAR(64), fails_run BOOLEAN DEFAULT 0 NOT NULL, covers BIGINT, savepoint VARCHAR(250), 
	CONSTRAINT checkpoints_pkey PRIMARY KEY (run_id, number)
);
INSERT INTO "checkpoints" VALUES('run-1',1,'sales','2024-01-01','periodic','completed','2026-11-26 08:41:42.848275','2026-11-26 08:41:42.905000',NULL,10,20,NULL,NULL,0,7,NULL);
INSERT INTO "checkpoints" VALUES('run-1',2,'sales','2024-01-01','stop','failed','2026-11-26 08:41:42.870857','2026-11-26 08:41:42.908000','too late',0,0,NULL,'checkpoint_expired',0,NULL,'before');
CREATE TABLE events (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	run_id VARCHAR(250) NOT NULL, 
	kind VARCHAR(64) NOT NULL, 
	subject VARCHAR(500) NOT NULL, 
	text TEXT NOT NULL, 
	recorded_at DATETIME NOT NULL
);
INSERT INTO "events" VALUES(1,'run-1','reuse','joined','something','2024-01-02 03:04:05.678901');
INSERT INTO "events" VALUES(2,'run-1','trace','run-1.joined.2024-01-01.1','Traceback ...','2024-01-02 03:04:05.678901');
CREATE TABLE gate_results (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	pipeline VARCHAR(250) NOT NULL, 
	interval VARCHAR(250) NOT NULL, 
	stage VARCHAR(250) NOT NULL, 
	partition INTEGER NOT NULL, 
	attempt_id VARCHAR(500) NOT NULL, 
	suite VARCHAR(250) NOT NULL, 
	expectation TEXT NOT NULL, 
	passed BOOLEAN NOT NULL, 
	observed TEXT NOT NULL, 
	recorded_at DATETIME NOT NULL
, severity VARCHAR(32) DEFAULT 'critical' NOT NULL, configuration TEXT DEFAULT '' NOT NULL, result TEXT DEFAULT '' NOT NULL);
INSERT INTO "gate_results" VALUES(1,'sales','2024-01-01','joined',0,'attempt-1','joined','no nulls',1,'3 nulls','2024-01-02 03:04:05.678901','critical','','');
INSERT INTO "gate_results" VALUES(2,'sales','2024-01-01','joined',1,'attempt-1','joined','no nulls',0,'3 nulls','2024-01-02 03:04:05.678901','critical','','');
INSERT INTO "gate_results" VALUES(3,'sales','2024-01-01','joined',2,'attempt-1','joined','no nulls',0,'3 nulls','2024-01-02 03:04:05.678901','warning','{"type": "expect"}','{"success": false}');
INSERT INTO "gate_results" VALUES(4,'sales','2024-01-01','joined',-1,'attempt-1','joined','no nulls',1,'3 nulls','2024-01-02 03:04:05.678901','critical','','');
CREATE TABLE leases (
	name VARCHAR(750) NOT NULL, 
	holder VARCHAR(500) NOT NULL, 
	epoch BIGINT NOT NULL, 
	expires_at DATETIME NOT NULL, 
	CONSTRAINT leases_pkey PRIMARY KEY (name)
);
INSERT INTO "leases" VALUES('sales/2024-01-01/joined','me',2,'2026-11-26 08:42:42.822000');
INSERT INTO "leases" VALUES('coordinator','me',1,'2026-11-26 08:42:42.847000');
CREATE TABLE ledger_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT ledger_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "ledger_version" VALUES('0014');
CREATE TABLE partition_counts (
	pipeline VARCHAR(250) NOT NULL, 
	interval VARCHAR(250) NOT NULL, 
	stage VARCHAR(250) NOT NULL, 
	partitions INTEGER NOT NULL, 
	bytes BIGINT NOT NULL, 
	recorded_at DATETIME NOT NULL, 
	CONSTRAINT partition_counts_pkey PRIMARY KEY (pipeline, interval, stage)
);
INSERT INTO "partition_counts" VALUES('sales','2024-01-01','joined',2,100,'2024-01-02 03:04:05.678901');
CREATE TABLE partitions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	pipeline VARCHAR(250) NOT NULL, 
	interval VARCHAR(250) NOT NULL, 
	stage VARCHAR(250) NOT NULL, 
	partition INTEGER NOT NULL, 
	state VARCHAR(32) NOT NULL, 
	run_id VARCHAR(250) NOT NULL, 
	attempt_id VARCHAR(500) NOT NULL, 
	epoch BIGINT NOT NULL, 
	wave INTEGER NOT NULL, 
	table_uri TEXT NOT NULL, 
	version BIGINT, 
	files JSON NOT NULL, 
	rows BIGINT NOT NULL, 
	fingerprint VARCHAR(250) NOT NULL, 
	compute_key VARCHAR(250) NOT NULL, 
	recorded_at DATETIME NOT NULL, 
	reason TEXT
, seconds FLOAT, unexplained BOOLEAN DEFAULT 0 NOT NULL, kept JSON, judged VARCHAR(250) DEFAULT '' NOT NULL, refused JSON);
INSERT INTO "partitions" VALUES(1,'sales','2024-01-01','joined',0,'consumable','run-1','run-1.joined.1',1,0,'/lake/sales/joined',1,'[{"path": "_data/1/0/_partition=0/part-0.parquet", "bytes": 1000, "rows": 10}]',10,'fingerprint of 0','key','2024-01-02 03:04:05.678901',NULL,NULL,0,NULL,'',NULL);
INSERT INTO "partitions" VALUES(2,'sales','2024-01-01','joined',1,'consumable','run-1','run-1.joined.1',1,0,'/lake/sales/joined',1,'[{"path": "_data/1/0/_partition=1/part-0.parquet", "bytes": 1000, "rows": 10}]',10,'fingerprint of 1','key','2024-01-02 03:04:05.678901',NULL,NULL,0,NULL,'',NULL);
INSERT INTO "partitions" VALUES(3,'sales','2024-01-01','joined',1,'blocked','run-1','run-1.joined.2',2,0,'/lake/sales/joined',NULL,'[{"path": "_data/2/0/_partition=1/part-0.parquet", "bytes": 1000, "rows": 10}]',10,'fingerprint of 1','key','2024-01-02 03:04:05.678901','no nulls: 3 nulls',1.5,0,NULL,'gate','["no nulls"]');
INSERT INTO "partitions" VALUES(4,'sales','2024-01-01','joined',2,'consumable','run-1','run-1.joined.2',2,0,'/lake/sales/joined',2,'[{"path": "_data/2/0/_partition=2/part-0.parquet", "bytes": 1000, "rows": 10}]',10,'fingerprint of 2','key','2024-01-02 03:04:05.678901',NULL,NULL,1,'[{"name": "totals", "files": [{"path": "_data/2/0/_state=totals/part-0.parquet", "bytes": 77, "rows": 3}], "rows": 3, "fingerprint": "state fp", "partitions": 2, "max_parallelism": 128, "began": "begun", "after": "2023-12-31"}, {"name": "__quarantine", "files": [{"path": "_data/2/0/_state=totals/part-0.parquet", "bytes": 77, "rows": 3}], "rows": 3, "fingerprint": "state fp", "partitions": 2, "max_parallelism": 128, "began": "begun", "after": null}]','',NULL);
INSERT INTO "partitions" VALUES(5,'sales','2024-01-01','joined',3,'held','run-1','run-1.joined.2',2,0,'/lake/sales/joined',NULL,'[{"path": "_data/2/0/_partition=3/part-0.parquet", "bytes": 1000, "rows": 10}]',10,'fingerprint of 3','key','2024-01-02 03:04:05.678901',NULL,NULL,0,NULL,'',NULL);
INSERT INTO "partitions" VALUES(6,'sales','2024-01-01','joined',4,'released','run-1','run-1.joined.2',2,0,'/lake/sales/joined',2,'[{"path": "_data/2/0/_partition=4/part-0.parquet", "bytes": 1000, "rows": 10}]',10,'fingerprint of 4','key','2024-01-02 03:04:05.678901',NULL,NULL,0,NULL,'',NULL);
INSERT INTO "partitions" VALUES(7,'sales','2024-01-01','joined',5,'damaged','run-1','run-1.joined.2',2,0,'/lake/sales/joined',2,'[{"path": "_data/2/0/_partition=5/part-0.parquet", "bytes": 1000, "rows": 10}]',10,'fingerprint of 5','key','2024-01-02 03:04:05.678901',NULL,NULL,0,NULL,'',NULL);
CREATE TABLE positions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	pipeline VARCHAR(250) NOT NULL, 
	interval VARCHAR(250) NOT NULL, 
	stage VARCHAR(250) NOT NULL, 
	run_id VARCHAR(250) NOT NULL, 
	position JSON NOT NULL, 
	recorded_at DATETIME NOT NULL
);
INSERT INTO "positions" VALUES(1,'sales','2024-01-01','joined','run-1','{"after": null, "version": 3}','2026-11-26 08:41:42.712000');
INSERT INTO "positions" VALUES(2,'sales','2024-01-02','joined','run-1','{"after": 3, "version": 5}','2026-11-26 08:41:42.918000');
CREATE TABLE "restores" (
	run_id VARCHAR(250) NOT NULL, 
	identity VARCHAR(100) NOT NULL, 
	stage VARCHAR(250), 
	requested_at DATETIME NOT NULL, 
	life DATETIME, 
	fulfilled_at DATETIME, 
	snapshot TEXT, 
	allow_non_restored BOOLEAN DEFAULT 0 NOT NULL, 
	as_recorded BOOLEAN DEFAULT 0 NOT NULL, code_choices JSON, claim_mode VARCHAR(32) DEFAULT 'no_claim' NOT NULL, work_order JSON, 
	CONSTRAINT restores_pkey PRIMARY KEY (run_id, identity)
);
INSERT INTO "restores" VALUES('run-1','asked','joined','2024-01-02 03:04:05.678901',NULL,'2026-11-26 08:41:42.844000',NULL,0,0,NULL,'no_claim',NULL);
INSERT INTO "restores" VALUES('run-1','told',NULL,'2024-01-02 03:04:05.678901',NULL,NULL,NULL,0,0,NULL,'no_claim','{"stages": ["joined", "total"], "anew": ["total"], "only_recorded": false, "as_recorded": false, "backfill": "b1"}');
INSERT INTO "restores" VALUES('run-1','snapshot',NULL,'2024-01-02 03:04:05.678901','2024-01-02 03:04:05.678901',NULL,'/lake/checkpoints/1.json',1,1,'[{"stage": "joined", "handling": "keep", "made_by": ["code-1"], "said_by": "me", "reason": "a comment"}]','claim',NULL);
CREATE TABLE runs (
	run_id VARCHAR(250) NOT NULL, 
	pipeline VARCHAR(250) NOT NULL, 
	interval VARCHAR(250) NOT NULL, 
	launcher VARCHAR(32) NOT NULL, 
	state VARCHAR(32) NOT NULL, 
	started_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	params JSON NOT NULL, cancel_asked_at DATETIME, 
	CONSTRAINT runs_pkey PRIMARY KEY (run_id)
);
INSERT INTO "runs" VALUES('run-1','sales','2024-01-01','cli','failed','2024-01-02 03:04:05.678901','2026-11-26 08:41:42.948000','{"limit": 3}',NULL);
CREATE TABLE savepoint_requests (
	name VARCHAR(250) NOT NULL, 
	run_id VARCHAR(250) NOT NULL, 
	stop BOOLEAN NOT NULL, 
	requested_by VARCHAR(250) NOT NULL, 
	reason TEXT NOT NULL, 
	requested_at DATETIME NOT NULL, 
	settled_at DATETIME, 
	failure TEXT, 
	CONSTRAINT savepoint_requests_pkey PRIMARY KEY (name)
);
INSERT INTO "savepoint_requests" VALUES('before','run-1',1,'me','a release','2024-01-02 03:04:05.678901',NULL,NULL);
CREATE TABLE stage_verdicts (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	pipeline VARCHAR(250) NOT NULL, 
	interval VARCHAR(250) NOT NULL, 
	stage VARCHAR(250) NOT NULL, 
	fingerprint VARCHAR(250) NOT NULL, 
	judged VARCHAR(250) NOT NULL, 
	attempt_id VARCHAR(500) NOT NULL, 
	recorded_at DATETIME NOT NULL, 
	refused JSON, 
	reason TEXT
);
INSERT INTO "stage_verdicts" VALUES(1,'sales','2024-01-01','joined','content','gate','attempt-1','2024-01-02 03:04:05.678901','["unique"]','unique: got 2');
CREATE TABLE transitions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	run_id VARCHAR(250) NOT NULL, 
	attempt_id VARCHAR(500), 
	"before" VARCHAR(32), 
	"after" VARCHAR(32) NOT NULL, 
	event VARCHAR(32), 
	recorded_at DATETIME NOT NULL
);
INSERT INTO "transitions" VALUES(1,'run-1',NULL,NULL,'created',NULL,'2026-11-26 08:41:42.572000');
INSERT INTO "transitions" VALUES(2,'run-1',NULL,'created','running','start','2026-11-26 08:41:42.577000');
INSERT INTO "transitions" VALUES(3,'run-1','run-1.joined.2024-01-01.1',NULL,'created',NULL,'2026-11-26 08:41:42.591000');
INSERT INTO "transitions" VALUES(4,'run-1','run-1.joined.2024-01-01.1','created','scheduled','schedule','2026-11-26 08:41:42.607000');
INSERT INTO "transitions" VALUES(5,'run-1','run-1.joined.2024-01-01.1','scheduled','deploying','deploy','2026-11-26 08:41:42.607000');
INSERT INTO "transitions" VALUES(6,'run-1','run-1.joined.2024-01-01.1','deploying','initializing','reported_initializing','2026-11-26 08:41:42.607000');
INSERT INTO "transitions" VALUES(7,'run-1','run-1.joined.2024-01-01.1','initializing','running','reported_running','2026-11-26 08:41:42.607000');
INSERT INTO "transitions" VALUES(8,'run-1','run-1.joined.2024-01-01.1','running','failed','fail','2026-11-26 08:41:42.622000');
INSERT INTO "transitions" VALUES(9,'run-1',NULL,'running','failing','fail','2026-11-26 08:41:42.957000');
INSERT INTO "transitions" VALUES(10,'run-1',NULL,'failing','failed','all_ended','2026-11-26 08:41:42.957000');
CREATE TABLE waivers (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	pipeline VARCHAR(250) NOT NULL, 
	interval VARCHAR(250) NOT NULL, 
	stage VARCHAR(250) NOT NULL, 
	partition INTEGER NOT NULL, 
	expectation TEXT NOT NULL, 
	fingerprint VARCHAR(250) NOT NULL, 
	waived_by VARCHAR(250) NOT NULL, 
	reason TEXT NOT NULL, 
	recorded_at DATETIME NOT NULL, 
	until DATETIME
);
INSERT INTO "waivers" VALUES(1,'sales','2024-01-01','joined',3,'no nulls','fingerprint of 3','ann','known since March','2024-01-02 03:04:05.678901',NULL);
INSERT INTO "waivers" VALUES(2,'sales','2024-01-01','joined',4,'no nulls','fingerprint of 4','ann','known since March','2024-01-02 03:04:05.678901','2024-01-02 03:04:05.678901');
CREATE INDEX runs_by_pipeline_interval_started_at ON runs (pipeline, interval, started_at);
CREATE INDEX runs_by_started_at ON runs (started_at);
CREATE INDEX attempts_by_run_id ON attempts (run_id);
CREATE INDEX attempts_by_pipeline_interval_region_epoch ON attempts (pipeline, interval, region, epoch);
CREATE INDEX partitions_by_pipeline_interval_stage_partition_id ON partitions (pipeline, interval, stage, partition, id);
CREATE INDEX partitions_by_run_id ON partitions (run_id);
CREATE INDEX gate_results_by_pipeline_interval_stage_partition_id ON gate_results (pipeline, interval, stage, partition, id);
CREATE INDEX events_by_run_id_id ON events (run_id, id);
CREATE INDEX positions_by_pipeline_stage_id ON positions (pipeline, stage, id);
CREATE INDEX positions_by_run_id ON positions (run_id);
CREATE INDEX acceptances_by_pipeline_stage_id ON acceptances (pipeline, stage, id);
CREATE INDEX transitions_by_run_id_id ON transitions (run_id, id);
CREATE INDEX checkpoints_by_pipeline_interval ON checkpoints (pipeline, interval);
CREATE INDEX savepoint_requests_by_run_id ON savepoint_requests (run_id);
CREATE INDEX waivers_by_pipeline_interval_stage_id ON waivers (pipeline, interval, stage, id);
CREATE INDEX stage_verdicts_by_pipeline_interval_stage_id ON stage_verdicts (pipeline, interval, stage, id);
CREATE INDEX backfills_by_pipeline_requested_at ON backfills (pipeline, requested_at);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('transitions',10);
INSERT INTO "sqlite_sequence" VALUES('partitions',7);
INSERT INTO "sqlite_sequence" VALUES('gate_results',4);
INSERT INTO "sqlite_sequence" VALUES('positions',2);
INSERT INTO "sqlite_sequence" VALUES('acceptances',1);
INSERT INTO "sqlite_sequence" VALUES('waivers',2);
INSERT INTO "sqlite_sequence" VALUES('stage_verdicts',1);
INSERT INTO "sqlite_sequence" VALUES('events',2);
COMMIT;
