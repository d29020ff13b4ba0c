// Written by scripts/write_web_types.py from the operations; do not edit it by hand.

export type Action = "delegate" | "edit" | "fetch" | "other" | "plan" | "read" | "run" | "search";

export interface Activity {
  since: string;
  until: string;
  calendar: Array<CalendarDay>;
}

export interface Belief {
  memory: Memory;
  quote: Evidence | null;
  replaced: Array<Memory>;
}

export interface Beliefs {
  beliefs: Array<Belief>;
  total: number;
}

export interface BroughtBack {
  memories: Array<Memory>;
  rules: Array<StandingRetirement>;
}

export interface Budget {
  most: number;
  spent: number;
}

export interface CalendarDay {
  day: string;
  sessions: number;
  turns: number;
}

export interface Change {
  memory: string;
  before: Version | null;
  after: Version | null;
}

export interface ChangedFile {
  path: string;
  action: string;
  what: string;
  is_own: boolean;
  diff: Array<string>;
}

export interface ChannelState {
  name: string;
  kind: string;
  enabled: boolean;
  problem: string;
  traffic: ChannelTraffic;
}

export interface ChannelTraffic {
  channel: string;
  waiting: number;
  sending: number;
  sent: number;
  failed: number;
  doubled: number;
}

export interface ChatMessage {
  id: string;
  role: string;
  text: string;
  name: string;
  at: string;
  is_owner: boolean;
}

export interface ChatSession {
  id: string;
  key: string;
  chat: NacreValuesGatewayChat;
  name: string;
  created: string;
  updated: string;
  messages: number;
  indexed: number;
  input_tokens: number;
  output_tokens: number;
  cost: number;
  closed: string | null;
}

export type ChatType = "direct" | "group";

export interface Check {
  name: string;
  state: string;
  detail: string;
  hint: string | null;
}

export interface CompanionView {
  memory: Memory;
  weight: number;
  sessions: number;
}

export type Confidence = "extracted" | "inferred";

export interface Confirmation {
  at: string;
  session: string | null;
  turns: Array<string>;
}

export interface ContextBlock {
  text: string;
  items: Array<ContextItem>;
  left_out: Array<LeftOut>;
  lanes: Array<Lane>;
  gate: string;
  project: string | null;
  tokens: number;
  took_ms: number;
  state: SessionState | null;
}

export interface ContextItem {
  part: Part;
  text: string;
  tokens: number;
  ref: string | null;
  date: string | null;
  score: number | null;
  why: string;
}

export interface CostReport {
  today: string;
  budget: Budget;
  tasks: Array<TaskCost>;
  is_background_on: boolean;
}

export interface Difference {
  change: Change;
  subject: string;
  fields: Array<FieldChange>;
  lines: Array<string>;
}

export type DreamAction = "expire" | "forget" | "merge" | "page" | "supersede";

export interface DreamPlan {
  steps: Array<NacreReviewConsolidateStep>;
  put_off: Array<NacreReviewConsolidateStep>;
  seen: number;
  most: number;
  project: string | null;
  refused: Array<[NacreReviewConsolidateStep, string]>;
  settled: Array<string>;
  unasked: number;
  note: string | null;
  unwritten: Array<[string, string]>;
  texts: Array<[string, string]>;
  brought_back: number;
  looked: Array<[string, Array<string>]>;
  keys: Array<string>;
}

export interface DreamReport {
  plan: DreamPlan;
  operation: string | null;
  diary: string | null;
  left: Array<[NacreReviewConsolidateStep, string]>;
  is_first: boolean;
}

export type Ending = "done" | "failed" | "stopped" | "unknown";

export interface ErrorMet {
  text: string;
  call: string;
  times: number;
  mended: boolean;
}

export interface Evidence {
  session_id: string;
  turn_id: string;
  seq: number;
  speaker: Speaker;
  time: string | null;
  excerpt: string;
}

export type Expiry = "core" | "permanent" | "temporary";

export interface FieldChange {
  name: string;
  before: unknown;
  after: unknown;
}

export interface FileChange {
  path: string;
  before: string | null;
  after: string | null;
  hosts: Array<string>;
  what: string;
  mode: number;
  is_pristine: boolean;
}

export interface FileTouched {
  path: string;
  edits: number;
  reads: number;
}

export type Flag = 1 | 2 | 4 | 8 | 16 | 32;

export interface GatewayState {
  running: boolean;
  model: string;
  channels: Array<ChannelState>;
  waiting: Array<Pairing>;
  undelivered: Array<Undelivered>;
}

export interface GraphMap {
  nodes: Array<MapNode>;
  edges: Array<MapEdge>;
  memories: number;
  links: number;
}

export type HitConfidence = "likely" | "sure" | "weak";

export interface HostState {
  name: string;
  label: string;
  is_here: boolean;
  program: string | null;
  by_user: boolean;
  wired: Array<WiringWish>;
}

export interface IngestPlan {
  files: number;
  bytes: number;
  tools: Record<string, number>;
  skipped: number;
  unrecognised: number;
  excluded: Record<string, number>;
  problems: Array<Problem>;
}

export type Kind = "decision" | "event" | "fact" | "lesson" | "preference" | "relationship" | "todo";

export interface Lane {
  name: string;
  state: LaneState;
  note: string | null;
}

export type LaneState = "partial" | "ran" | "skipped" | "unavailable";

export interface LeftAlone {
  path: string;
  host: string;
  reason: string;
  hint: string;
}

export interface LeftOut {
  part: Part;
  ref: string | null;
  why: string;
  subject: string | null;
}

export interface Link {
  rel: string;
  to: string;
  reason: string | null;
  origin: string | null;
  strength: number | null;
  valid: Validity;
}

export interface LinkView {
  rel: string;
  other: string;
  subject: string | null;
  is_outgoing: boolean;
  origin: string;
  reason: string | null;
  strength: number;
  valid: Validity;
}

export interface Listed {
  operation: Operation;
  memories: Array<string>;
}

export interface Listing {
  memories: Array<Memory>;
  total: number;
  outdated_by: Record<string, Array<string>>;
}

export type Loose = "failing" | "next step" | "question" | "request" | "todo";

export interface MapEdge {
  source: number;
  target: number;
  rel: string;
}

export interface MapNode {
  id: string;
  subject: string;
  kind: Kind;
  project: string | null;
  importance: number;
  degree: number;
  trusted: boolean;
}

export type Match = "contains" | "exact" | "pattern";

export interface Matches {
  turns: Array<TurnHit>;
  more: boolean;
  unread: boolean;
  given_up: number;
}

export type Maturity = "candidate" | "established" | "proven";

export interface Memory {
  id: string;
  kind: Kind;
  subject: string;
  content: string;
  created: string;
  updated: string;
  importance: number;
  expiry: Expiry;
  scope: Scope;
  project: string | null;
  tags: Array<string>;
  valid: Validity;
  expires_on: string | null;
  speaker: Speaker;
  trust: Trust;
  confidence: Confidence;
  confidence_score: number | null;
  canonical_key: string | null;
  evergreen: boolean;
  author: string | null;
  triggers: Array<string>;
  suppressed_contexts: Array<string>;
  source: NacreValuesMemorySource;
  confirmed: Array<Confirmation>;
  links: Array<Link>;
  superseded_by: string | null;
  retired: Retirement | null;
  inbox: boolean;
  proposed: boolean;
  extra: Record<string, unknown>;
}

export interface MemoryHit {
  memory: Memory;
  score: number;
  components: Record<string, number>;
  confidence: HitConfidence;
  evidence: Array<Evidence>;
  outdated_by: Array<string>;
  doubt: string | null;
  space: string | null;
  candidate: boolean;
  rank: number;
}

export interface MemoryView {
  memory: Memory;
  evidence: Array<Evidence>;
  links: Array<LinkView>;
  path: string | null;
  usage: Usage;
  maturity: Maturity;
  together: Array<CompanionView>;
  etag: string | null;
  doubt: string | null;
  deliveries: number;
}

export interface OpenEnd {
  kind: Loose;
  text: string;
  speaker: Speaker;
  turn: string;
}

export interface Operation {
  id: string;
  at: string;
  action: string;
  subject: string | null;
  why: string | null;
  by: string | null;
  committed: string | null;
}

export interface OperationDiff {
  operation: Operation;
  differences: Array<Difference>;
}

export interface Overview {
  memories: Record<string, number>;
  projects: Array<string>;
  checks: Array<Check>;
  links: number;
}

export interface OwnMemory {
  host: string;
  state: string;
  told: string;
  hint: string;
}

export interface OwnPage {
  name: string;
  path: string;
  text: string;
  told_tokens: number;
  etag: string;
}

export interface Pair {
  older: Memory;
  newer: Memory;
  reason: string | null;
}

export interface Paired {
  pairing: Pairing;
  identity: string | null;
}

export interface Pairing {
  channel: string;
  sender: string;
  name: string;
  code: string;
  asked: string;
  approved: string | null;
}

export type Part = "active" | "decisions" | "handoff" | "identity" | "known" | "nudge" | "pointer" | "previous" | "profile" | "project" | "relevant" | "rules" | "signals";

export interface Pending {
  id: string;
  kind: PendingKind;
  memory: Memory;
  why: string;
  detail: string | null;
  since: string | null;
  newer: Memory | null;
  later: string | null;
}

export type PendingKind = "candidate" | "conflict" | "doubt";

export interface PendingPage {
  items: Array<Pending>;
  total: number;
  conflicts: number;
  doubts: number;
  candidates: number;
}

export interface PinCheck {
  question: string;
  answer: string;
  holds: boolean;
  first: string;
  memories: Array<string>;
}

export interface Place {
  project: string | null;
  known: Array<string>;
  is_known: boolean;
  namesake: string | null;
}

export interface Problem {
  path: string;
  message: string;
  hint: string | null;
}

export interface ProjectDetail {
  project: ProjectLine;
  page: string;
  remotes: Array<string>;
  roots: Array<string>;
  labels: Array<string>;
  needed_by: Array<string>;
  latest: Array<Memory>;
}

export interface ProjectLine {
  slug: string;
  name: string;
  memories: number;
  sessions: number;
  last: string | null;
  aliases: Array<string>;
  dependencies: Array<string>;
  hint: string | null;
}

export interface ProjectMergePlan {
  project: string;
  into: string;
  memories: number;
  sessions: number;
  takes: Array<[string, string]>;
  words: string;
}

export interface ProjectMoved {
  project: string;
  into: string;
  memories: number;
  sessions: number;
  operation: string;
  retired: string | null;
  left: Array<string>;
}

export interface Quote {
  seq: number;
  speaker: Speaker;
  excerpt: string;
}

export interface RecallResult {
  query: string;
  hits: Array<MemoryHit>;
  turns: Array<TurnHit>;
  lanes: Array<Lane>;
  since: string | null;
  until: string | null;
  around: string | null;
  time_words: string | null;
  truncated: boolean;
  took_ms: number;
}

export interface RemoteStanding {
  url: string;
  space: string;
  private: boolean;
  succeeded: string | null;
  problem: string;
  hint: string;
  documents: number;
  waiting_turns: number;
}

export interface Resumption {
  line: SessionLine;
  command: Array<string>;
  folder: string | null;
}

export interface Retirement {
  at: string;
  reason: string | null;
}

export type Scope = "personal" | "private" | "public";

export interface Session {
  tool: string;
  native_id: string;
  title: string | null;
  cwd: string | null;
  branch: string | null;
  repository: string | null;
  label: string | null;
  kind: SessionKind;
  parent: string | null;
  started: string | null;
  tool_version: string | null;
  model: string | null;
  tokens: Tokens | null;
}

export type SessionKind = "heartbeat" | "main" | "scheduled" | "subagent";

export interface SessionLine {
  session: StoredSession;
  opening: string | null;
  active: string | null;
  ending: Ending | null;
}

export interface SessionOutcome {
  ending: Ending;
  reason: string;
  words: string;
  speaker: Speaker | null;
  turn: string | null;
}

export interface SessionPage {
  lines: Array<SessionLine>;
  more: boolean;
  total: number;
  tools: Array<string>;
}

export interface SessionReport {
  view: SessionView;
  summary: Summary;
}

export interface SessionState {
  given: Array<string>;
  asked: string;
  heard: Array<string>;
  signals: number;
  signal_mark: number;
  signal_at: number;
  turns: number;
  nudges: number;
  stored_mark: number;
  started: number;
  handed: boolean;
  name: string;
  folder: string;
  seen: number;
  ended: number;
  after: Array<string>;
  owed: string;
  limited: Array<string>;
}

export interface SessionView {
  session: StoredSession;
  turns: Array<StoredTurn>;
  memories: Array<Memory>;
  opening: string | null;
  active: string | null;
  parent: StoredSession | null;
  children: Array<SessionLine>;
  injected: Array<[Memory, string]>;
}

export interface SettingView {
  key: string;
  value: unknown;
  origin: string;
  variable: string;
  default: unknown;
  summary: string;
  form: string;
  choices: Array<string>;
}

export type Speaker = "agent" | "owner" | "system" | "tool";

export interface StandingRetirement {
  id: string;
  pattern: string;
  match: Match;
  at: string;
  canonical_key: string | null;
  reason: string | null;
  contexts: Array<string>;
}

export interface Stats {
  memories: Record<string, number>;
  links: number;
  tools: Array<ToolStats>;
  projects: number;
  passages: number;
  vectors_missing: number;
  model: string | null;
  database: string;
  database_bytes: number;
  vault: string;
  vault_files: number;
  nacre: string;
  schema: number;
  sqlite: string;
}

export interface StoredSession {
  row: number;
  session: Session;
  project: string | null;
  ended: string | null;
  file: string | null;
  turns: number;
}

export interface StoredTurn {
  row: number;
  session: number;
  seq: number;
  turn: Turn;
}

export interface Summary {
  topics: Array<Topic>;
  outcome: SessionOutcome;
  open_ends: Array<OpenEnd>;
  files: Array<FileTouched>;
  commits: Array<string>;
  pull_requests: Array<string>;
  errors: Array<ErrorMet>;
}

export interface TaskCost {
  task: string;
  calls_today: number;
  cost_today: number;
  calls: number;
  failed: number;
  tokens: number;
  cost: number;
  unpriced: number;
}

export interface Today {
  since: string;
  until: string;
  project: string | null;
  learned: Array<Memory>;
  learned_total: number;
  sources: Array<NacreCareTodaySource>;
  operations: Array<Operation>;
  tools: Array<ToolSessions>;
  sessions: Array<SessionLine>;
  conflicts: number;
  doubts: number;
  candidates: number;
  cost: number;
  cost_month: number;
  problems: Array<Check>;
}

export interface Tokens {
  input: number;
  cached: number;
  output: number;
}

export interface ToolCall {
  name: string;
  input: string;
  outcome: string | null;
  action: Action;
  paths: Array<string>;
  error: string | null;
  made: Array<string>;
}

export interface ToolSessions {
  tool: string;
  sessions: number;
  turns: number;
}

export interface ToolStats {
  tool: string;
  sessions: number;
  turns: number;
  first: string | null;
  last: string | null;
}

export interface Topic {
  text: string;
  turn: string;
  speaker: Speaker;
  work: number;
}

export type Trust = "trusted" | "untrusted";

export interface Turn {
  id: string;
  speaker: Speaker;
  text: string;
  time: string | null;
  tool_calls: Array<ToolCall>;
  flags: Flag;
  trust: Trust;
  author: string | null;
  unique: boolean;
}

export interface TurnHit {
  session: Session;
  project: string | null;
  turn: Turn;
  seq: number;
  score: number;
  excerpt: string;
  components: Record<string, number>;
  confidence: HitConfidence;
  quotes: Array<Quote>;
  doubt: string | null;
  rank: number;
}

export interface Unanswered {
  gaps: Array<UnansweredQuestion>;
  total: number;
  closed: number;
  by: string;
}

export interface UnansweredQuestion {
  id: string;
  question: string;
  times: number;
  unsure: number;
  first: string;
  last: string;
  projects: Array<string>;
  wordings: Array<string>;
}

export interface Undelivered {
  channel: string;
  key: string;
  state: string;
  problem: string;
  created: string;
  attempts: number;
}

export interface Undoing {
  operation: Operation;
  steps: Array<NacreDataUndoStep>;
  op: string | null;
  waiting: Array<Memory>;
}

export interface Usage {
  recall_count: number;
  last_recalled: string | null;
  intervals: Array<number>;
  quality: number;
  access_count: number;
  shown: number;
  followed: number;
  broken: number;
}

export interface Validity {
  since: string | null;
  until: string | null;
}

export interface Version {
  path: string;
  text: string;
}

export interface WiringDone {
  plan: WiringPlan;
  backups: Array<string>;
  left_alone: Array<LeftAlone>;
  old_copies: Array<string>;
  trusted: boolean;
}

export interface WiringPlan {
  wishes: Array<WiringWish>;
  changes: Array<FileChange>;
  left_alone: Array<LeftAlone>;
  kept: Array<LeftAlone>;
  servers: Record<string, Array<Array<string>>>;
  notes: Array<[string, string]>;
  is_removal: boolean;
  own_memories: Array<OwnMemory>;
  settings: Record<string, Record<string, unknown>>;
}

export interface WiringPreview {
  files: Array<ChangedFile>;
  unchanged: number;
  left_alone: Array<LeftAlone>;
  own_memories: Array<OwnMemory>;
  notes: Array<string>;
}

export interface WiringWish {
  host: string;
  project: string | null;
  slot: boolean;
  tool_hook: boolean;
  isolates: boolean;
  introduces: boolean;
}

export interface WriterStatus {
  writer: string;
  state: string;
  tokens_today: number;
  calls_today: number;
  limit: number | null;
  since: string;
  waiting: number;
  problem: string | null;
  hint: string | null;
  kept_here: Array<string>;
}

export interface NacreCareTodaySource {
  speaker: string;
  tool: string | null;
  memories: number;
}

export interface NacreDataUndoStep {
  action: string;
  change: Change;
  memory: Memory | null;
  clashes: Array<string>;
}

export interface NacreHomeViewsStep {
  memory: Memory;
  since: string;
  until: string | null;
  superseded_by: string | null;
  reason: string | null;
  is_asked: boolean;
}

export interface NacreReviewConsolidateStep {
  action: DreamAction;
  ends: Array<string>;
  into: string | null;
  subject: string;
  why: string;
  words: string;
  by: string;
  mark: string;
  project: string;
}

export interface NacreValuesGatewayChat {
  channel: string;
  id: string;
  kind: ChatType;
  account: string;
  thread: string;
}

export interface NacreValuesMemorySource {
  session: string | null;
  turns: Array<string>;
  file: string | null;
}

export interface NacreGatewayEngineChat {
  session: ChatSession;
  messages: Array<ChatMessage>;
  path: string;
  waiting: Array<ChatMessage>;
  is_answering: boolean;
}

export type Choice = "keep-both" | "keep-new" | "keep-old";

export interface Filter {
  projects?: Array<string>;
  strict?: boolean;
  exclude_projects?: Array<string>;
  since?: string | null;
  until?: string | null;
  kinds?: Array<Kind>;
  tags?: Array<string>;
  min_importance?: number | null;
  expiry?: Array<Expiry>;
  scope?: Scope;
  owner_only?: boolean;
  tools?: Array<string>;
  sessions?: Array<string>;
  as_of?: string | null;
  trusted?: boolean;
  settled?: boolean;
}

export type Mode = "browse" | "hybrid" | "lexical" | "vector";

export type Moment = "prompt" | "start";

export type Occasion = "clear" | "compact" | "resume" | "startup";

export interface SessionFilter {
  tool?: string | null;
  project?: string | null;
  since?: string | null;
  until?: string | null;
  subagents?: boolean;
  branch?: string | null;
  model?: string | null;
  kind?: SessionKind | null;
  words?: string | null;
}

export interface SessionRequest {
  reference?: string | null;
  first?: number;
  limit?: number | null;
  at_end?: boolean;
  around?: string | null;
  folder?: string | null;
}

export interface SignalLimits {
  min_importance?: number;
  most_at_once?: number;
  cooldown_seconds?: number;
  most_per_session?: number;
  max_age_seconds?: number;
}

export interface ValidityInput {
  since?: string | null;
  until?: string | null;
}

export interface WireRequest {
  wishes: Array<WiringWishInput>;
  uninstall?: boolean;
}

export interface WiringWishInput {
  host: string;
  project?: string | null;
  slot?: boolean;
  tool_hook?: boolean;
  isolates?: boolean;
  introduces?: boolean;
}

export interface Operations {
  "db-stats": [Record<string, never>, Stats];
  "doctor": [{
    repair?: boolean;
  }, Array<Check>];
  "overview": [Record<string, never>, Overview];
  "doctor-deep": [{
    everything?: boolean;
    repair?: boolean;
  }, Array<Check>];
  "activity": [{
    since?: string | null;
    until?: string | null;
    project?: string | null;
  }, Activity];
  "today": [{
    since?: string | null;
    until?: string | null;
    project?: string | null;
    limit?: number;
  }, Today];
  "context": [{
    moment?: Moment;
    occasion?: Occasion;
    prompt?: string;
    folder?: string | null;
    session?: string | null;
    budget_tokens?: number | null;
    parts?: Array<Part>;
    alone?: boolean;
    signals?: SignalLimits | null;
    project?: string | null;
  }, ContextBlock];
  "page-own": [{
    name: "identity" | "profile" | "project";
    project?: string | null;
  }, OwnPage];
  "page-write": [{
    name: "identity" | "profile" | "project";
    text: string;
    project?: string | null;
    expected?: string | null;
  }, OwnPage];
  "log": [{
    reference?: string | null;
    project?: string | null;
    action?: string | null;
    limit?: number;
    offset?: number;
  }, Array<Listed>];
  "undo": [{
    operation?: string | null;
  }, Undoing];
  "diff": [{
    reference?: string | null;
  }, OperationDiff];
  "place": [{
    name?: string | null;
    folder?: string | null;
  }, Place];
  "cost": [Record<string, never>, CostReport];
  "hosts-wire": [WireRequest, WiringDone];
  "hosts": [Record<string, never>, Array<HostState>];
  "hosts-preview": [WireRequest, WiringPreview];
  "doctor-hosts": [Record<string, never>, Array<Check>];
  "ingest-plan": [{
    paths?: Array<string>;
    discover?: boolean;
    remember_paths?: boolean;
    extract?: boolean;
    vectors?: boolean;
    force?: boolean;
    older?: boolean;
    from_archive?: boolean;
    reads?: boolean;
    vector_seconds?: number | null;
    puts_off?: boolean;
  }, IngestPlan];
  "graph-map": [{
    project?: string | null;
    limit?: number;
  }, GraphMap];
  "history": [{
    reference: string;
  }, Array<NacreHomeViewsStep>];
  "look": [{
    reference: string;
    update?: boolean;
    session?: string | null;
  }, MemoryView];
  "beliefs": [{
    project?: string | null;
    kinds?: Array<Kind>;
    replaced?: boolean;
    limit?: number;
    offset?: number;
  }, Beliefs];
  "project-rename": [{
    project: string;
    name: string;
    reason?: string | null;
  }, ProjectMoved];
  "project-merge-plan": [{
    project: string;
    into: string;
  }, ProjectMergePlan];
  "project-merge": [{
    project: string;
    into: string;
    reason?: string | null;
  }, ProjectMoved];
  "project-list": [Record<string, never>, Array<ProjectLine>];
  "project-show": [{
    project: string;
  }, ProjectDetail];
  "project-depend": [{
    project: string;
    on: Array<string>;
    remove?: boolean;
  }, ProjectLine];
  "unretire": [{
    references: Array<string>;
  }, BroughtBack];
  "retired": [Record<string, never>, Array<Memory>];
  "list": [{
    filter?: Filter;
    words?: string;
    limit?: number;
    offset?: number;
  }, Listing];
  "edit": [{
    reference: string;
    expected?: string | null;
    subject?: string;
    content?: string;
    kind?: Kind;
    importance?: number;
    expiry?: Expiry;
    expires_on?: string | null;
    scope?: Scope;
    project?: string | null;
    tags?: Array<string>;
    add_tags?: Array<string>;
    triggers?: Array<string>;
    trigger_times?: number;
    valid?: ValidityInput;
    evergreen?: boolean;
    suppressed_contexts?: Array<"prompt" | "session-start">;
  }, Memory];
  "retire": [{
    references?: Array<string>;
    contains?: Array<string>;
    like?: Array<string>;
    reason?: string | null;
    persist?: boolean;
  }, Array<Memory>];
  "pin": [{
    question: string;
    answer?: string;
    remove?: boolean;
  }, PinCheck];
  "recall": [{
    text: string;
    filter?: Filter;
    mode?: Mode;
    limit?: number;
    around?: string | null;
    ignore_time?: boolean;
    radius_days?: number;
    budget_tokens?: number | null;
    boost?: boolean;
    update?: boolean;
    diversify?: boolean;
    mmr_lambda?: number | null;
    word_share?: number | null;
    prefer_kinds?: Array<Kind>;
    threshold?: number;
    topic?: string;
    fuzzy?: boolean;
    confident?: boolean;
    turns?: number;
    session?: string | null;
    co_recall?: boolean;
    is_prompt?: boolean;
  }, RecallResult];
  "search-sessions": [{
    text: string;
    filter?: Filter;
    mode?: Mode;
    limit?: number;
    around?: string | null;
    ignore_time?: boolean;
    radius_days?: number;
    budget_tokens?: number | null;
    boost?: boolean;
    update?: boolean;
    diversify?: boolean;
    mmr_lambda?: number | null;
    word_share?: number | null;
    prefer_kinds?: Array<Kind>;
    threshold?: number;
    topic?: string;
    fuzzy?: boolean;
    confident?: boolean;
    turns?: number;
    session?: string | null;
    co_recall?: boolean;
    is_prompt?: boolean;
    offset?: number;
    aspect?: string;
    role?: string;
  }, RecallResult];
  "dream-plan": [{
    project?: string | null;
    tier?: number;
    most?: number | null;
    writer?: boolean;
  }, DreamPlan];
  "dream": [{
    project?: string | null;
    tier?: number;
    most?: number | null;
    writer?: boolean;
    steps?: Array<string> | null;
    first?: boolean;
  }, DreamReport];
  "review-resolve": [{
    reference: string;
    choice: Choice;
    reason?: string | null;
  }, Pair];
  "review": [{
    project?: string | null;
    only?: PendingKind | null;
    limit?: number;
    offset?: number;
  }, PendingPage];
  "review-keep": [{
    references: Array<string>;
    content?: string | null;
    into?: string | null;
    expected?: string | null;
    anyway?: boolean;
  }, Array<Memory>];
  "review-drop": [{
    references: Array<string>;
    reason?: string | null;
  }, Array<Memory>];
  "review-undo": [{
    reference: string;
  }, Memory];
  "unanswered": [{
    days?: number;
    project?: string | null;
    min_times?: number;
    limit?: number;
  }, Unanswered];
  "match-sessions": [{
    expression: string;
    filter?: Filter;
    limit?: number;
    offset?: number;
    aspect?: string;
    role?: string;
    seconds?: number;
  }, Matches];
  "sessions": [{
    filter?: SessionFilter;
    limit?: number;
    offset?: number;
  }, SessionPage];
  "session-summary": [SessionRequest, SessionReport];
  "session": [SessionRequest, SessionView];
  "resume": [{
    what?: string | null;
    folder?: string | null;
  }, Resumption];
  "writer": [Record<string, never>, WriterStatus];
  "writer-pause": [Record<string, never>, WriterStatus];
  "writer-resume": [Record<string, never>, WriterStatus];
  "config": [Record<string, never>, Array<SettingView>];
  "config-set": [{
    key: string;
    value: unknown;
  }, SettingView];
  "config-unset": [{
    key: string;
  }, SettingView | null];
  "gateway-end": [{
    reference: string;
  }, ChatSession];
  "gateway-pair": [{
    who: string;
    me?: boolean;
  }, Paired];
  "gateway-pairings": [Record<string, never>, Array<Pairing>];
  "gateway-session": [{
    reference: string;
    limit?: number;
  }, NacreGatewayEngineChat];
  "gateway-sessions": [{
    channel?: string | null;
    closed?: boolean;
    limit?: number;
    offset?: number;
  }, Array<ChatSession>];
  "gateway-status": [Record<string, never>, GatewayState];
  "gateway-unpair": [{
    who: string;
  }, boolean];
  "remote": [Record<string, never>, RemoteStanding];
}
