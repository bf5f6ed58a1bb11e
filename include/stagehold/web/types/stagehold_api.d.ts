// Written by `make docs` from the OpenAPI document of Stagehold's web API.

declare namespace Api {
  type Action = "reuse" | "run" | "heal" | "judge" | "blocked" | "release";

  interface ActionGroup {
    action: Action;
    reason: string;
    count: number;
    partitions: string;
  }

  interface AgainRequest {
    dry_run?: boolean;
    stages: string[];
  }

  type Answer = "acknowledged" | "declined";

  interface AttemptLine {
    region: string;
    epoch: number;
    state: AttemptState;
    lost: AttemptLoss | null;
    started_at: string;
    ended_at: string | null;
    failure: string | null;
    cause: string | null;
    trace: string | null;
    labels: Record<string, string>;
    waves: WaveEnd[];
  }

  interface AttemptLoss {
    noticed: string;
    at: string;
  }

  interface AttemptPart {
    attempt_id: string;
    share: string | null;
    asked_at: string;
    answered_at: string | null;
    answer: Answer | null;
    reason: CheckpointFailure | null;
  }

  type AttemptState =
    | "created"
    | "scheduled"
    | "deploying"
    | "initializing"
    | "running"
    | "finished"
    | "canceling"
    | "canceled"
    | "failed";

  interface BegunBackfill {
    backfill_id: number;
    place: string;
    token: string;
    intervals: string[];
    along: string | null;
  }

  interface CellReason {
    text: string;
    count: number;
    partitions: string;
    runs: boolean;
    judges: boolean;
  }

  type CellState =
    | "failed"
    | "blocked"
    | "lost"
    | "running"
    | "admitted"
    | "held"
    | "waiting"
    | "stale"
    | "waived"
    | "restored"
    | "consumable"
    | "released"
    | "unneeded";

  interface CheckpointAnswers {
    run_id: string;
    number: number;
    regions: RegionParts[];
    stages: StagePart[];
  }

  interface CheckpointCounts {
    triggered: number;
    in_progress: number;
    completed: number;
    failed: number;
    restored: number;
  }

  type CheckpointFailure =
    | "too_many_checkpoint_requests"
    | "minimum_time_between_checkpoints"
    | "not_all_required_tasks_running"
    | "blocking_output_exists"
    | "io_exception"
    | "checkpoint_declined"
    | "checkpoint_declined_task_not_ready"
    | "checkpoint_declined_task_closing"
    | "checkpoint_async_exception"
    | "checkpoint_expired"
    | "finalize_checkpoint_failure"
    | "checkpoint_subsumed"
    | "checkpoint_coordinator_suspend"
    | "checkpoint_coordinator_shutdown"
    | "job_failover_region";

  interface CheckpointLine {
    run_id: string;
    number: number;
    interval: string;
    state: CheckpointState;
    replaced: boolean;
    trigger: CheckpointTrigger;
    savepoint: string | null;
    triggered_at: string;
    ended_at: string | null;
    acknowledged: number;
    asked: number;
    bytes_written: number;
    bytes_full: number;
    alignment: number | null;
    failure: string | null;
    fails_run: boolean;
    untold: boolean;
  }

  interface CheckpointPage {
    counts: CheckpointCounts;
    summary: CheckpointSummary | null;
    completed: CheckpointLine | null;
    savepoint: CheckpointLine | null;
    failed: CheckpointLine | null;
    restore: RestoreLine | null;
    checkpoints: CheckpointLine[];
  }

  type CheckpointState = "in_progress" | "completed" | "failed";

  interface CheckpointSummary {
    checkpoints: number;
    duration: Spread;
    alignment: Spread | null;
    bytes_written: Spread;
    bytes_full: Spread;
  }

  type CheckpointTrigger = "periodic" | "end_of_run" | "asked_for" | "stop";

  type ClaimMode = "no_claim" | "claim";

  interface Disposed {
    disposed: SavepointLine;
    notes: string[];
  }

  interface DocsMade {
    pages: number;
  }

  interface ExpectationRates {
    suite: string;
    expectation: string;
    severity: Severity;
    rates: IntervalRate[];
  }

  interface ExpectationVerdicts {
    suite: string;
    expectation: string;
    severity: Severity;
    judged: number;
    judged_at: string;
    outcomes: OutcomeGroup[];
    numeric: boolean;
    words: WordTold[];
  }

  interface FirstStale {
    interval: string;
    stage: string;
    reason: string;
  }

  interface GateFailure {
    stage: string;
    suite: string;
    expectation: string;
    standing: RefusalStanding;
    partitions: [number, number][];
    count: number;
    observed: string;
    waiver: WaiverTold | null;
    past: WordTold[];
  }

  interface GateRates {
    intervals: string[];
    stages: StageRates[];
  }

  interface Health {
    kept_bytes: number;
    most_bytes: number;
    kept: KeptKind[];
    resident_bytes: number;
  }

  interface HistoryLine {
    at: string;
    of: string;
    text: string;
  }

  interface InstalledVersion {
    package: string;
    version: string;
  }

  interface IntervalComparison {
    one: string;
    other: string;
    stages: StageComparison[];
  }

  type IntervalLook = "all" | "failed" | "needed";

  interface IntervalMark {
    interval: string;
    word: RunWord;
    run_id: string;
    started_at: string;
    ended_at: string | null;
    need: Need | null;
    reason: string | null;
    step: NextStep | null;
    waived: boolean;
  }

  interface IntervalPage {
    dag_id: string;
    place: string;
    places: Record<string, string>;
    pipeline: string;
    schedule: string | null;
    total: number;
    looks: Partial<Record<IntervalLook, number>>;
    stages: StageColumn[];
    intervals: IntervalRow[];
    following: string | null;
    looked: Looked;
    may_change: boolean;
  }

  interface IntervalPin {
    by: string;
    at: string;
    reason: string;
  }

  interface IntervalRate {
    interval: string;
    counts: Partial<Record<Outcome, number>>;
  }

  interface IntervalRow {
    interval: string;
    looks: IntervalLook[];
    run: NewestRun | null;
    cells: StageCell[];
    pin: IntervalPin | null;
  }

  type IntervalState = "complete" | "incomplete" | "empty";

  interface KeptKind {
    kind: string;
    values: number;
    bytes: number;
  }

  interface LeaseAnswer {
    name: string;
    kind: LeaseKind;
    subject: string;
    interval: string | null;
    run_id: string | null;
    attempt_id: string | null;
    owner: string;
    host: string | null;
    pid: number | null;
    epoch: number;
    taken_at: string | null;
    renewed_at: string | null;
    expires_at: string;
    seconds_left: number;
    pulse: PulseAnswer | null;
  }

  type LeaseKind = "region" | "coordinator" | "helper" | "other";

  interface LeaseLine {
    name: string;
    holder: string;
    epoch: number;
    expires_at: string;
  }

  interface LeasesAnswer {
    leases: LeaseAnswer[];
    left_out: LeftOutAnswer[];
  }

  interface LedgerSize {
    back_end: string;
    schema_version: string | null;
    bytes: number | null;
  }

  interface LeftOutAnswer {
    host: string;
    failures: number;
    rule: string;
    until: string;
  }

  interface Looked {
    into: LookedInto;
    at: string | null;
    problem: string | null;
  }

  type LookedInto = "record" | "lake";

  interface MadeBy {
    run_id: string;
    partitions: number;
  }

  type Making = "pending" | "made" | "failed";

  interface MatrixRun {
    run_id: string;
    interval: string;
    launcher: string;
    state: RunState;
    active: boolean;
    started_at: string;
    ended_at: string | null;
    seconds: number;
    spared: number;
    squares: RunSquare[];
  }

  type Need = "blocked" | "failed" | "suspended" | "incomplete";

  interface NewBackfill {
    first: string;
    last: string;
    token: string;
    stages?: string[];
    restore_from_stage?: string | null;
    only?: Only | null;
    max_active?: number;
  }

  interface NewSavepoint {
    name: string;
    reason?: string;
    stop?: boolean;
  }

  interface NewestInterval {
    mark: IntervalMark;
    state: IntervalState | null;
    consumable: number;
    done: number;
    partitions: number;
    text: string;
  }

  interface NewestRun {
    run_id: string;
    state: RunState;
    active: boolean;
    started_at: string;
    ended_at: string | null;
  }

  type NextStep = "resume" | "run" | "look";

  interface ObservedHistory {
    stage: string;
    expectation: string;
    points: ObservedPoint[];
  }

  interface ObservedPoint {
    interval: string;
    low: number;
    middle: number;
    high: number;
    partitions: number;
    failed: number;
    least: number | null;
    most: number | null;
  }

  type Only = "missing" | "failed" | "stale" | "all";

  interface Origins {
    computed: number;
    restored: number;
    reused: Reused[];
    others: number;
    saved_seconds: number;
  }

  type Outcome = "passed" | "failed" | "waived" | "warning" | "info";

  interface OutcomeGroup {
    outcome: Outcome;
    count: number;
    partitions: [number, number][];
    samples: SeenSample[];
  }

  interface Overview {
    total: number;
    found: number;
    kinds: Partial<Record<PipelineKind, number>>;
    tags: string[];
    owners: string[];
    me: string;
    pipelines: PipelineRow[];
    leases: LeaseLine[];
    versions: InstalledVersion[];
    looked: Looked;
  }

  interface Pace {
    wave: number;
    recorded: number;
    left: number;
    per_minute: number;
    seconds_to_go: number | null;
    recorded_at: string;
  }

  interface PartitionCell {
    partition: number;
    state: CellState;
    action: Action;
    reason: string;
    rows: number | null;
    bytes: number | null;
    seconds: number | null;
    epoch: number | null;
    wave: number | null;
    version: number | null;
    run_id: string | null;
    recorded_at: string | null;
    skew: string | null;
    restored: boolean;
    waived: boolean;
  }

  type PartitionState = "consumable" | "held" | "blocked" | "released" | "damaged";

  interface PinAnswer {
    intervals: string[];
    pinned: boolean;
    released: number;
  }

  interface PinRequest {
    intervals: string[];
    pinned?: boolean;
    why?: string;
  }

  interface PipelineHistory {
    intervals: string[];
    stages: StageHistory[];
  }

  type PipelineKind =
    | "failing"
    | "blocked"
    | "waived"
    | "stale"
    | "running"
    | "overdue"
    | "never_run"
    | "current"
    | "hidden";

  interface PipelineLine {
    name: string;
    schedule: string | null;
    stages: string[];
  }

  type PipelineOrder = "state" | "name" | "newest";

  interface PipelineRecoveries {
    recoveries: Recovery[];
  }

  interface PipelineRow {
    name: string;
    place: string;
    tags: string[];
    owners: string[];
    schedule: string | null;
    paused: boolean;
    standing: PipelineStanding;
    active: number;
    due: string | null;
    newest: NewestInterval | null;
    marks: IntervalMark[];
  }

  interface PipelineSize {
    name: string;
    partitions: number;
    bytes: number;
  }

  interface PipelineStaleness {
    name: string;
    planned_at: string | null;
    looked_at: number;
    stale: number;
    unplanned: number;
    first: FirstStale | null;
    problem: string | null;
  }

  type PipelineStanding = "hidden" | "failing" | "running" | "overdue" | "never_run" | "current";

  interface PlanUnderWay {
    planned: number;
    of: number | null;
  }

  interface PulseAnswer {
    stage: string;
    wave: number;
    doing: Side | null;
    done: number;
    partitions: number;
    rows: number;
    bytes: number;
    read: number;
    rows_a_second: number;
    bytes_a_second: number;
    seconds: Partial<Record<Side, number>>;
    slowest: Side | null;
    share_of_slowest: number;
    client_bytes: number | null;
    server_bytes: number | null;
  }

  interface Recovery {
    interval: string;
    run_id: string;
    subject: string;
    attempts: number;
    cause: string | null;
    failure: string;
    failed_at: string;
    recovered_at: string | null;
    reused: number;
    saved_seconds: number;
  }

  type RefusalStanding = "blocked" | "waived" | "to_publish" | "published" | "outdated" | "ended" | "outstaying";

  interface RegionParts {
    region: string;
    acknowledged: number;
    asked: number;
    asked_at: string;
    answered_at: string | null;
    attempts: AttemptPart[];
  }

  interface Restorable {
    reference: string;
    savepoint: boolean;
    run_id: string;
    number: number;
    interval: string;
    taken_at: string;
  }

  interface RestoreLine {
    run_id: string;
    manifest: string;
    requested_at: string;
    fulfilled_at: string | null;
    claim_mode: ClaimMode;
  }

  interface RestoredFrom {
    stage: string | null;
    reference: string | null;
    requested_at: string;
    fulfilled_at: string | null;
    snapshot: Snapshot | null;
    problem: string | null;
  }

  interface ResumeAnswer {
    dry_run: boolean;
    cleared: TaskToClear[];
    reuse: number;
    run: number;
    along: number;
    judge: number;
    retract: number;
  }

  interface ResumePreview {
    refusal: string | null;
    tasks: TaskToClear[];
    reuse: number;
    run: number;
    along: number;
    restored: number;
    judge: number;
    retract: number;
    again: number;
    saved_seconds: number;
    released: string | null;
  }

  interface ResumeRequest {
    dry_run?: boolean;
  }

  interface Resumed {
    by: string;
    at: string;
  }

  interface Reused {
    run_id: string;
    partitions: number;
  }

  interface RunChoice {
    run_id: string;
    interval: string;
    state: RunState;
    started_at: string;
  }

  interface RunGrid {
    dag_id: string;
    place: string;
    places: Record<string, string>;
    run_id: string;
    pipeline: string;
    interval: string;
    state: string;
    ledger_state: RunState | null;
    active: boolean;
    headline: string;
    consumable: number;
    stale: number;
    released: number;
    partitions: number;
    whole: boolean;
    origins: Origins;
    planned: boolean;
    stages: StageRow[];
    attempts: AttemptLine[];
    failures: AttemptLine[];
    gate_failures: GateFailure[];
    resume: ResumePreview;
    resumed: Resumed | null;
    restore: RestoredFrom | null;
    may_change: boolean;
    may_waive: boolean;
    may_stop: boolean;
    unmet: number;
    looked: Looked;
    untold: HistoryLine[];
  }

  interface RunHistory {
    lines: HistoryLine[];
    earlier: number;
    archived: boolean;
  }

  interface RunMatrixPage {
    dag_id: string;
    place: string;
    pipeline: string;
    stages: string[];
    runs: MatrixRun[];
    following: string | null;
    looked_at: number;
    looked: Looked;
  }

  interface RunSquare {
    stage: string;
    outcome: StageOutcome;
    counts: Partial<Record<StageOutcome, number>>;
    attempts: number;
    seconds: number;
    spared: number;
    cause: string | null;
    failure: string | null;
    lost: AttemptLoss | null;
  }

  type RunState =
    | "created"
    | "running"
    | "restarting"
    | "failing"
    | "failed"
    | "cancelling"
    | "canceled"
    | "finished"
    | "reconciling"
    | "suspended";

  interface RunVerdicts {
    stages: StageVerdicts[];
    docs: boolean;
  }

  type RunWord = "queued" | "running" | "success" | "failed" | "canceled" | "suspended" | "silent";

  interface SavedStage {
    stage: string;
    partitions: number;
    consumable: number;
    rows: number;
    bytes: number;
    missing: number[];
  }

  interface SavepointChoices {
    may_change: boolean;
    may_dispose: boolean;
    may_restore: boolean;
    runs: RunChoice[];
  }

  interface SavepointFacts {
    savepoint: SavepointLine;
    stages: SavedStage[];
  }

  interface SavepointLine {
    name: string;
    pipeline: string;
    interval: string;
    run_id: string;
    number: number;
    created_by: string;
    reason: string;
    created_at: string;
    imported: boolean;
    manifest: string;
  }

  interface SavepointStatus {
    name: string;
    run_id: string;
    state: Making;
    requested_by: string;
    stop: boolean;
    savepoint: SavepointLine | null;
    failure: string | null;
  }

  interface SeenSample {
    partition: number;
    observed: string;
    values: string[];
    rows: Record<string, string>[];
  }

  type Severity = "critical" | "warning" | "info";

  interface ShownBackfill {
    pipeline: string;
    first: string;
    last: string;
    only: string | null;
    stages: string[];
    restore_from_stage: string | null;
    token: string;
    intervals: ShownInterval[];
    runs: number;
    reuses: number;
    seconds: number;
    saved_seconds: number;
    unknown: string[];
    refusal: string | null;
    along: string | null;
    released: string | null;
    remark: string | null;
  }

  interface ShownCell {
    stage: string;
    state: string;
    partitions: number;
    runs: number;
    reuses: number;
    seconds: number;
    reasons: CellReason[];
    released: number;
  }

  interface ShownInterval {
    interval: string;
    run_id: string | null;
    problem: string | null;
    cells: ShownCell[];
  }

  type Side = "reading" | "function" | "writing" | "judging" | "publishing";

  interface SizesSeen {
    counted: boolean;
    ledgers: LedgerSize[];
    pipelines: PipelineSize[];
  }

  interface Snapshot {
    address: string;
    name: string | null;
    run_id: string;
    number: number;
    interval: string;
    taken_at: string;
  }

  interface Spread {
    least: number;
    average: number;
    p50: number;
    p99: number;
    most: number;
  }

  interface StageCell {
    stage: string;
    state: StageStanding;
    counts: Partial<Record<PartitionState, number>>;
    wanted: number | null;
    computed: number;
    reused: number;
    rows: number;
    bytes: number;
    seconds: number;
    recorded_at: string | null;
    made_by: MadeBy[];
    judged: number;
    refused: number;
    warned: number;
    failures: TryFailure[];
  }

  interface StageColumn {
    name: string;
    region: string;
    gate: string | null;
    stored: boolean;
  }

  interface StageComparison {
    stage: string;
    one: StageContents;
    other: StageContents;
    equal: number;
    causes: string[];
    columns: string[];
  }

  interface StageContents {
    partitions: number;
    consumable: number;
    rows: number;
    bytes: number;
    seconds: number;
    judged: number;
    refused: number;
    waived: number;
    columns: Record<string, string>;
  }

  interface StageHistory {
    stage: string;
    seconds: (number | null)[];
    rows: (number | null)[];
    bytes: (number | null)[];
  }

  type StageOutcome =
    | "running"
    | "blocked"
    | "failed"
    | "held"
    | "damaged"
    | "missing"
    | "healed"
    | "ran"
    | "judged"
    | "reused"
    | "released"
    | "none";

  interface StagePart {
    stage: string;
    region: string;
    partitions: number;
    rows: number;
    bytes: number;
  }

  interface StageRates {
    stage: string;
    gate: string | null;
    expectations: ExpectationRates[];
  }

  interface StageRow {
    name: string;
    state: AttemptState;
    region: string;
    job: string;
    gate: string | null;
    table: string | null;
    stored: boolean;
    reads: string[];
    task_state: string | null;
    consumable: number;
    partitions: number;
    blocked: number;
    counts: Partial<Record<CellState, number>>;
    cells: PartitionCell[];
    strip: StripPart[];
    groups: ActionGroup[];
    pace: Pace | null;
    counters: Record<string, number>;
  }

  type StageStanding =
    | "running"
    | "blocked"
    | "failed"
    | "held"
    | "damaged"
    | "missing"
    | "partial"
    | "released"
    | "consumable";

  interface StageVerdicts {
    stage: string;
    gate: string;
    partitions: number;
    expectations: ExpectationVerdicts[];
  }

  interface StaleInterval {
    interval: string;
    stages: StaleStage[];
  }

  interface StaleOverview {
    planned: boolean;
    pipelines: PipelineStaleness[];
  }

  interface StaleStage {
    stage: string;
    partitions: number;
    reason: string;
  }

  interface Staleness {
    pipeline: string;
    planned_at: string | null;
    looked_at: string[];
    stale: StaleInterval[];
    unplanned: Unplanned[];
  }

  interface StopAnswer {
    ledger_state: RunState | null;
    at_work: string[];
  }

  interface StripPart {
    first: number;
    last: number;
    state: CellState;
    counts: Partial<Record<CellState, number>>;
  }

  interface TaskToClear {
    task_id: string;
    region: string | null;
    state: string | null;
    reason: string;
    name: string;
    map_index: number | null;
  }

  interface TryFailure {
    tries: number;
    cause: string | null;
    failure: string | null;
    lost: AttemptLoss | null;
  }

  interface Unplanned {
    interval: string;
    problem: string;
  }

  interface WaiveAnswer {
    stage: string;
    expectation: string;
    partitions: [number, number][];
    waiver: WaiverTold;
  }

  interface WaiveRequest {
    stage: string;
    expectation: string;
    partitions: [number, number][];
    reason: string;
    until?: string | null;
    end?: boolean;
  }

  interface WaiverTold {
    waived_by: string;
    reason: string;
    recorded_at: string;
    until: string | null;
  }

  interface WaveEnd {
    stage: string;
    wave: number;
    partitions: number;
    ended_at: string;
  }

  interface WordTold {
    waiver: WaiverTold;
    holds: boolean;
    partitions: [number, number][];
    count: number;
  }
}
