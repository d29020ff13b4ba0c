// Written by scripts/write_web_types.py from the operations; do not edit it by hand.

export interface Activity {
  since: string;
  until: string;
  project: string | null;
  step: string;
  steps: Array<string>;
  sessions: Array<Series>;
  turns: Array<Series>;
  stored: Array<Series>;
  held: Array<Series>;
  recalls: Array<number>;
  questions: Array<Series>;
  tokens: Array<Series>;
  cost: Array<Series>;
  calendar: Array<CalendarDay>;
  ages: Array<Age>;
  never: number;
  seldom: number;
  often: number;
}

export interface Age {
  least: number;
  most: number | null;
  memories: number;
  stale: number;
}

export interface Alike {
  groups: Array<Array<Memory>>;
  total: number;
}

export interface ArchiveReport {
  files: number;
  read: number;
  stored: number;
  pruned: number;
  seconds: number;
  problems: Array<Problem>;
}

export interface ArchiveStatus {
  enabled: boolean;
  folder: string;
  tools: Array<ArchivedTool>;
  waiting: number;
  withheld: number;
}

export interface ArchivedTool {
  tool: string;
  files: number;
  gone: number;
  raw: number;
  stored: number;
  first: string;
  last: string;
}

export type Aspect = "corrections" | "failed-calls" | "messages" | "repeated";

export interface BackupReport {
  path: string;
  bytes: number;
  manifest: Manifest;
}

export interface Brief {
  text: string;
  memories: number;
  links: number;
  alike: number;
  projects: number;
  components: number;
  gaps: number;
  unlinked: number;
  todos: number;
  stale: number;
  central: Array<CentralMemory>;
  active_projects: Array<string>;
  decisions: Array<Memory>;
}

export interface BroughtBack {
  memories: Array<Memory>;
  rules: Array<StandingRetirement>;
}

export interface Budget {
  period: string;
  most: number;
  spent: number;
}

export interface CalendarDay {
  day: string;
  sessions: number;
  turns: number;
}

export interface Capabilities {
  window: number;
  output: number;
  answers: string;
  caches: boolean;
  thinking: number;
  price: Price | null;
  known: boolean;
}

export interface Central {
  found: Array<CentralMemory>;
  memories: number;
  links: number;
}

export interface CentralMemory {
  memory: Memory;
  degree: number;
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
  files: Array<[string, string]>;
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
  compactions: number;
  flushed: number;
  tokens: number;
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

export interface ChoresReport {
  done: number;
  failed: number;
  given_up: number;
  left: number;
}

export interface CodeAnswer {
  asked: string;
  nodes: Array<CodeNode>;
  choices: Array<CodeNode>;
  links: Array<CodeLink>;
  memories: Array<CodeMemory>;
  more: boolean;
}

export interface CodeLink {
  rel: string;
  node: CodeNode;
  line: number;
  depth: number;
  via: string | null;
  note: string;
}

export interface CodeMemory {
  memory: Memory;
  names: Array<string>;
  nodes: Array<string>;
}

export interface CodeNode {
  id: string;
  project: string;
  path: string;
  name: string;
  kind: string;
  line: number;
}

export interface CodeReport {
  project: string;
  root: string;
  files: number;
  read: number;
  unchanged: number;
  removed: number;
  skipped: number;
  failed: Array<string>;
  left_out: number;
  symbols: number;
  edges: number;
  languages: Record<string, number>;
  by_git: boolean;
  seconds: number;
}

export interface Committed {
  commits: Array<[string, string]>;
  operations: number;
  waiting: number;
  held: Array<Held>;
  note: string | null;
}

export interface Companion {
  node: Node;
  weight: number;
  sessions: number;
}

export interface CompanionView {
  memory: Memory;
  weight: number;
  sessions: number;
}

export interface Comparison {
  aspect: Aspect;
  finding: Finding;
  sessions_told: number;
  sessions_held_out: number;
  told: number | null;
  held_out: number | null;
  difference: number | null;
  low: number | null;
  high: number | null;
}

export interface Component {
  size: number;
  links: number;
  central: Array<Memory>;
}

export interface Components {
  found: Array<Component>;
  total: number;
  alone: number;
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
  budgets: Array<Budget>;
  tasks: Array<TaskCost>;
  is_background_on: boolean;
}

export type DecidedBy = "asker" | "model" | "rules";

export interface DeepResult {
  query: string;
  route: Route;
  project: string | null;
  clarify: Array<string>;
  candidates: Array<NacreValuesRecallCandidate>;
  hits: Array<MemoryHit>;
  context: string;
  steps: Array<DeepStep>;
  lanes: Array<Lane>;
  model: string | null;
  repeated: boolean;
  took_ms: number;
}

export interface DeepStep {
  name: string;
  by: DecidedBy;
  outcome: string;
  problem: string | null;
}

export interface Difference {
  change: Change;
  subject: string;
  fields: Array<FieldChange>;
  lines: Array<string>;
}

export interface Documents {
  count: number;
  bytes: number;
  ledger_lines: number;
  hash: string;
}

export type DreamAction = "expire" | "file" | "forget" | "merge" | "page" | "supersede" | "unlink";

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
  unfiled: Array<string>;
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

export interface Effects {
  shown: number;
  followed: number;
  broken: number;
  pointers: number;
  pointers_followed: number;
  off: Array<string>;
}

export interface Embedded {
  made: number;
  left: number;
  note: string | null;
  tokens: number;
}

export type Ending = "done" | "failed" | "stopped" | "unknown";

export interface ErrorMet {
  text: string;
  call: string;
  times: number;
  mended: boolean;
  trust: Trust;
}

export interface Estimate {
  waiting: number;
  trivial: number;
  model: string;
  calls: number;
  tokens: number;
  cost: number | null;
  left: number;
  tokens_left: number | null;
  is_background_on: boolean;
  is_older: boolean;
  problems: Array<Problem>;
}

export interface Evidence {
  session_id: string;
  turn_id: string;
  speaker: Speaker;
  time: string | null;
  excerpt: string;
}

export interface Excerpt {
  of: string;
  text: string;
}

export interface Exchanged {
  url: string;
  space: string;
  sent: number;
  received: number;
  turns: number;
  notes: Array<NacreVaultDocumentsNote>;
  held: Array<[string, string]>;
  problems: Array<string>;
}

export type Expiry = "core" | "permanent" | "temporary";

export interface ExportReport {
  path: string;
  form: string;
  counts: Record<string, number>;
  left_out: number;
  bytes: number;
  withheld: number;
}

export interface Extracted {
  candidates: Array<NacreValuesMemoryCandidate>;
  problem: string | null;
}

export interface Extraction {
  candidates: Array<NacreValuesMemoryCandidate>;
  model: string;
  overtaken: Array<Overtaken>;
  doubted: Array<Overtaken>;
  dropped: Record<string, number>;
  proposed: number;
  repeated: number;
  calls: number;
  tokens: NacreValuesModelsTokens;
  parts: number;
  by_rules: number;
  is_whole: boolean;
  problem: string | null;
  hint: string | null;
  is_over: boolean;
  is_useless: boolean;
  left: Array<string>;
  is_uncompared: boolean;
}

export interface FeedbackReport {
  judged: Array<Judged>;
  by: string | null;
  note: string | null;
}

export interface FieldChange {
  name: string;
  before: unknown;
  after: unknown;
}

export interface FileHistory {
  asked: string;
  paths: Array<string>;
  changes: Array<NacreValuesSessionFileChange>;
  edits: number;
  reads: number;
  sessions: number;
  more: boolean;
}

export interface FileTouched {
  path: string;
  edits: number;
  reads: number;
}

export type Finding = "less with memory" | "more with memory" | "too few" | "unclear";

export interface FixResult {
  error: string;
  troubles: Array<Trouble>;
  lessons: Array<MemoryHit>;
  talk: Array<TurnHit>;
}

export type Flag = 1 | 2 | 4 | 8 | 16 | 32;

export interface FlushReport {
  memories: Array<string>;
  duplicates: number;
  sessions: number;
  chores: ChoresReport;
  notes: Array<string>;
}

export interface ForgetPlan {
  how: string;
  sessions: Record<string, number>;
  parts: Record<string, number>;
  memories: Array<Memory>;
  losing: Array<Memory>;
  released: Array<Memory>;
  excerpts: Array<Excerpt>;
  untitled: Array<string>;
  handoffs: Array<string>;
  files: Array<string>;
  traces: number;
  held: number;
  match: string | null;
  regex: boolean;
  project: string | null;
}

export interface ForgetReport {
  run: string;
  plan: ForgetPlan;
  is_erased: boolean;
  unreached: Array<Unreached>;
}

export interface Forgotten {
  run: string;
  at: string;
  how: string;
  sessions: Array<string>;
  turns: number;
  memories: number;
  before: string | null;
  is_allowed: boolean;
}

export interface ForgottenCode {
  project: string;
  was_there: boolean;
}

export interface FoundWriter {
  name: string;
  label: string;
  payer: string;
  is_free: boolean;
  problem: string;
  is_refused: boolean;
  is_here: boolean;
}

export interface Gap {
  memory: Memory;
  degree: number;
  maturity: Maturity;
  idle_days: number;
}

export interface Gaps {
  found: Array<Gap>;
  total: number;
  unlinked: number;
}

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

export interface Handoff {
  id: string;
  project: string;
  session: string;
  content: string;
  by: string;
  written: string;
  said: string;
  until: string;
  asked: string;
  given: string;
}

export interface HandoffView {
  project: string | null;
  handoff: Handoff | null;
  waits: boolean;
  is_new: boolean;
  note: string | null;
}

export interface Held {
  path: string;
  reason: string;
}

export type HitConfidence = "likely" | "sure" | "weak";

export interface HookAnswer {
  context: string;
  chores: Array<string>;
  state: SessionState | null;
  held_out: boolean;
}

export interface Hop {
  parent: number;
  child: number;
  rel: string;
  is_outgoing: boolean;
  origin: string;
  strength: number;
  valid: Validity;
  reason: string | null;
  is_again: boolean;
}

export interface HostCommand {
  words: Array<string>;
  what: string;
  touches: Array<string>;
}

export interface HostSetting {
  host: string;
  path: string;
  name: string;
  before: string;
}

export interface HostState {
  name: string;
  label: string;
  is_here: boolean;
  program: string | null;
  by_user: boolean;
  wired: Array<WiringWish>;
}

export interface ImportOptions {
  path: string;
  source: string;
  trust: boolean;
  project: string | null;
  vectors: boolean;
}

export interface ImportPlan {
  options: ImportOptions;
  source: ImportSource;
  steps: Array<NacreDataImportsStep>;
  skipped: Array<Skipped>;
  pages: Array<Page>;
  entries: Array<LedgerEntry>;
  transcripts: Array<string>;
  sessions: number;
  turns: number;
}

export interface ImportReport {
  added: Array<string>;
  updated: number;
  trusted: number;
  brought_back: number;
  duplicates: number;
  pages: number;
  entries: number;
  sessions: number;
  turns: number;
  ingest: IngestReport | null;
}

export interface ImportSource {
  name: string;
  label: string;
  recognise: unknown;
  read: unknown;
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

export interface IngestReport {
  files: number;
  sessions: number;
  turns: number;
  memories: Array<string>;
  skipped: number;
  unrecognised: number;
  left_out: number;
  duplicates: number;
  bytes_read: number;
  read_seconds: number;
  seconds: number;
  foreseen: string | null;
  vectors_made: number;
  vectors_left: number;
  vectors_note: string | null;
  tools: Record<string, number>;
  unknown: Record<string, number>;
  corrupt: number;
  oversized: number;
  excluded: Record<string, number>;
  archived: ArchiveReport;
  empty: Array<string>;
  unread: Array<string>;
  hints: Array<string>;
  problems: Array<Problem>;
  decided: Record<string, number>;
  extraction: ModelExtraction | null;
  candidates: number;
  doubted: number;
  ended: number;
}

export interface Judged {
  memory_id: string;
  subject: string;
  verdict: Verdict;
  likeness: number | null;
  before: number;
  after: number;
}

export interface Kept {
  path: string;
  size: number;
  sha256: string;
  mtime_ns: number;
}

export interface Key {
  id: string;
  space: string;
  account: string;
  role: Role;
  created: string | null;
  expires: string | null;
  revoked: string | null;
  last_used: string | null;
}

export type Kind = "decision" | "event" | "fact" | "lesson" | "preference" | "relationship" | "todo";

export interface Lane {
  name: string;
  state: LaneState;
  note: string | null;
}

export type LaneState = "partial" | "ran" | "skipped" | "unavailable";

export interface LedgerEntry {
  op: string;
  at: string;
  action: string;
  details: Record<string, unknown>;
}

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

export interface LinkChange {
  links: Array<LinkLine>;
  made: number;
  changed: number;
  removed: number;
  waiting: Array<string>;
}

export interface LinkLine {
  source: Node;
  rel: string;
  target: Node;
  origin: string;
  strength: number;
  valid: Validity;
  reason: string | null;
  holds: boolean;
}

export interface LinkPage {
  links: Array<LinkLine>;
  total: number;
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
}

export type Loose = "failing" | "next step" | "question" | "request" | "todo";

export interface Lot {
  setting: string;
  model: string;
  state: string;
  dimensions: number;
  passages: number;
  memories: number;
  waiting: number;
  bytes: number;
}

export interface Manifest {
  created: string;
  counts: Record<string, number>;
  files: Array<Kept>;
  notes: Array<string>;
}

export interface MapEdge {
  source: number;
  target: number;
  rel: string;
  strength: number;
  valid: Validity;
  origin: string;
}

export interface MapNode {
  id: string;
  subject: string;
  kind: Kind;
  project: string | null;
  importance: number;
  degree: number;
  state: string;
  trusted: boolean;
  valid_from: string;
}

export type Match = "contains" | "exact" | "pattern";

export interface Matches {
  turns: Array<TurnHit>;
  more: boolean;
  unread: boolean;
  given_up: number;
}

export type Maturity = "candidate" | "established" | "proven";

export interface Member {
  account: string;
  role: Role;
  since: string | null;
}

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

export type MergeOutcome = "copy_kept" | "forgotten" | "kept_beside" | "kept_edited" | "kept_twice" | "merged" | "renamed" | "stays_retired" | "united";

export interface ModelExtraction {
  model: string;
  sessions: number;
  trivial: number;
  parts: number;
  by_rules: number;
  calls: number;
  tokens: NacreValuesModelsTokens;
  found: number;
  held: number;
  repeated: number;
  dropped: Record<string, number>;
  problem: string | null;
  hint: string | null;
  elsewhere: number;
}

export interface MoveReport {
  place: string;
  kept: string;
  tenant: string;
  rows: Record<string, number>;
  written: number;
  passes: number;
  documents: Documents;
  documents_there: Documents;
  answers: SameAnswers;
  is_in_use: boolean;
  left: string;
}

export interface NewKey {
  key: Key;
  secret: string;
}

export interface Node {
  id: string;
  subject: string | null;
  kind: Kind | null;
  project: string | null;
  state: string;
  trusted: boolean;
}

export interface Offer {
  name: string;
  label: string;
  tasks: Array<Task>;
  capabilities: Capabilities;
  credential: string;
  needs_key: boolean;
  problem: Record<string, unknown> | null;
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

export interface Overtaken {
  memory: Memory;
  quote: string;
  statement: NacreValuesMemoryCandidate;
  shown: Confirmation;
  is_owners: boolean;
  is_doubtful: boolean;
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

export interface Page {
  path: string;
  document: string;
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

export interface Passage {
  text: string;
  score: number;
  session: string;
  key: string;
  channel: string;
  time: string | null;
  trust: Trust;
}

export interface Passages {
  query: string;
  passages: Array<Passage>;
  lanes: Array<Lane>;
}

export interface Pending {
  id: string;
  kind: PendingKind;
  memory: Memory;
  why: string;
  detail: string | null;
  since: string | null;
  newer: Memory | null;
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

export interface Plan {
  setting: string;
  model: string;
  used: string | null;
  place: NacreValuesModelsPlace;
  texts: number;
  tokens: number;
  cost: string | null;
  wants_yes: boolean;
  left: number;
}

export interface Price {
  input: string;
  output: string;
  cached: string;
  written: string;
}

export interface Problem {
  path: string;
  message: string;
  hint: string | null;
}

export interface Program {
  provider: string;
  name: string;
  path: string;
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
  evidence: Array<string>;
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

export interface Proposal {
  session: Session;
  candidates: Array<NacreValuesMemoryCandidate>;
  asked: Extraction | null;
}

export interface Pushed {
  obstacle: string;
}

export interface Question {
  first: Memory;
  second: Memory;
  why: string;
  contradicts: boolean;
}

export interface QuickstartResult {
  source: "discovered" | "examples";
  report: IngestReport;
  tools: Record<string, number>;
  best: Array<Memory>;
  answers: Array<SampleAnswer>;
  reach: Reach;
  changed: [string, number] | null;
  has_examples: boolean;
}

export type Raising = "members" | "owners";

export interface Reach {
  memories: number;
  replaced: number;
  candidates: number;
  likeliest: Array<string>;
  sessions: number;
  turns: number;
  writer: WriterStatus;
  found: FoundWriter | null;
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

export interface Reflected {
  action: string;
  first: Memory;
  second: Memory;
  stored: Memory | null;
}

export interface Reflection {
  questions: Array<Question>;
  total: number;
}

export interface Rehearsal {
  outcome: StoreOutcome;
  memory: Memory;
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

export interface Repair {
  session: Session;
  project: string | null;
  seq: number;
  time: string | null;
  failed: ToolCall;
  worked: boolean;
  attempts: number;
  steps: Array<ToolCall>;
  words: Turn | null;
}

export interface Replaced {
  memory: Memory;
  reason: string;
}

export interface RestoreReport {
  home: string;
  kept: string | null;
  manifest: Manifest;
}

export interface Restored {
  session: string;
  path: string;
  size: number;
  is_whole: boolean;
}

export interface Resumption {
  line: SessionLine;
  command: Array<string>;
  folder: string | null;
}

export interface RetirePlan {
  memories: Array<Memory>;
  named: Array<[string, Match, string | null]>;
  is_wider: boolean;
}

export interface Retirement {
  at: string;
  reason: string | null;
}

export type Role = "member" | "owner" | "reader" | "service";

export type Route = "none" | "owner" | "project";

export interface SameAnswers {
  asked: number;
  same: number;
  same_first: number;
  differing: Array<string>;
}

export interface SampleAnswer {
  question: string;
  result: RecallResult;
}

export type Scope = "personal" | "private" | "public";

export interface ScrubReport {
  dry_run: boolean;
  found: Record<string, Record<string, number>>;
  turns: number;
  memories: number;
  files: number;
  commits: number | null;
  copies: Array<string>;
  removed: Array<string>;
  elsewhere: Array<string>;
  vectors_left: number;
  seconds: number;
}

export interface Series {
  name: string;
  values: Array<number>;
}

export interface ServerChanges {
  space: string;
  version: number;
  newest: number;
  ledger_at: number;
  documents: Array<ServerDocument>;
  ledger: Array<string>;
  is_all: boolean;
}

export interface ServerDocument {
  path: string;
  text: string | null;
}

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
  tokens: NacreValuesSessionTokens | null;
}

export type SessionKind = "heartbeat" | "main" | "scheduled" | "subagent";

export interface SessionLine {
  session: StoredSession;
  opening: string | null;
  active: string | null;
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
  prompts: number;
  held_out: boolean;
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

export interface Shared {
  memory: Memory;
  space: string;
  is_new: boolean;
}

export interface SigningIn {
  model: string;
  ways: Array<Way>;
  programs: Array<Program>;
  keyring: string;
  why_no_keyring: string;
  key_file: string;
}

export interface Skipped {
  where: string;
  reason: string;
  count: number;
}

export interface Space {
  name: string;
  kind: SpaceKind;
  raising: Raising;
  role: Role;
  is_own: boolean;
  is_read: boolean;
}

export type SpaceKind = "organisation" | "person" | "team";

export type Speaker = "agent" | "owner" | "system" | "tool";

export interface StaleFile {
  path: string;
  edits: number;
  sessions: number;
  last: string;
  is_gone: boolean;
}

export interface StaleMemory {
  memory: Memory;
  confidence: number;
  files: Array<StaleFile>;
  sessions: number;
  lag_days: number;
  symbols: Array<string>;
  missing: Array<string>;
  is_checked: boolean;
}

export interface Staleness {
  memories: Array<StaleMemory>;
  looked_at: number;
  total: number;
}

export interface Standing {
  wanted: string;
  place: NacreValuesModelsPlace;
  in_use: Lot | null;
  other: Lot | null;
  switching: boolean;
  problem: Record<string, unknown> | null;
  held: Record<string, unknown> | null;
}

export interface StandingRetirement {
  id: string;
  pattern: string;
  match: Match;
  at: string;
  canonical_key: string | null;
  reason: string | null;
  contexts: Array<string>;
}

export type State = "no_remote" | "planned" | "synced" | "up_to_date";

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

export interface Status {
  wired: Array<string>;
  not_wired: Array<string>;
  memories: number;
  sessions: number;
  today: Array<SessionLine>;
  sessions_today: number;
  read: string | null;
  learned: Array<Memory>;
  candidates: number;
  doubts: number;
  conflicts: number;
  broken_pins: Array<PinCheck>;
  writer: WriterStatus;
  cost: number;
  budget: number;
  effects: Effects;
}

export interface StoreOutcome {
  action: string;
  memory_id: string;
  reason: string | null;
  supersedes: Array<Replaced>;
  superseded_by: Replaced | null;
  similar: Array<Memory>;
  decided_by: string | null;
  note: string | null;
  proposed: boolean;
  amended: Memory | null;
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

export interface Synced {
  state: State;
  remote: string | null;
  url: string | null;
  branch: string | null;
  sent: number;
  received: number;
  notes: Array<NacreVaultDocumentsNote>;
  held: Array<Held>;
  left_out: Array<string>;
  problems: Array<string>;
}

export type Task = "chat" | "dedup" | "dream" | "extraction" | "handoff" | "recall" | "test";

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

export interface ToolCall {
  name: string;
  input: string;
  outcome: string | null;
  action: NacreValuesSessionAction;
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

export interface Trace {
  id: string;
  task: Task;
  at: string;
  model: string;
  prompt: string;
  answer: string;
  error: string;
  tokens: NacreValuesModelsTokens;
  cost: number | null;
  seconds: number;
}

export interface Traversal {
  nodes: Array<Node>;
  hops: Array<Hop>;
  more: boolean;
  together: Array<Companion>;
}

export interface Trouble {
  error: string;
  likeness: number;
  times: number;
  sessions: number;
  repairs: Array<Repair>;
  trust: Trust;
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
  score: number;
  excerpt: string;
  components: Record<string, number>;
  confidence: HitConfidence;
  then: string;
  then_by: Speaker | null;
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

export interface Unreached {
  what: string;
  where: string;
  remedy: string;
}

export interface Usage {
  recall_count: number;
  last_recalled: string | null;
  intervals: Array<number>;
  contradictions: number;
  quality: number;
  access_count: number;
  shown: number;
  followed: number;
  broken: number;
}

export interface UsedTogether {
  memory: Memory;
  other: Memory;
  weight: number;
  sessions: number;
}

export interface Usefulness {
  share: number;
  compared: number;
  since: string | null;
  sessions_told: number;
  sessions_held_out: number;
  left_out: number;
  needed: number;
  comparisons: Array<Comparison>;
}

export interface Vacuumed {
  before: number;
  after: number;
  is_clean: boolean;
}

export interface Validity {
  since: string | null;
  until: string | null;
}

export type Verdict = "corrected" | "unused" | "used";

export interface Version {
  path: string;
  text: string;
}

export interface Way {
  method: string;
  provider: string;
  label: string;
  is_used: boolean;
  state: string;
  masked: string;
  origin: string;
  expires: string | null;
  problem: string;
  warning: string;
  hints: Array<string>;
  looked: Array<string>;
}

export type Why = "found" | "minor" | "unproven" | "untrusted";

export interface WiringDone {
  plan: WiringPlan;
  backups: Array<string>;
  left_alone: Array<LeftAlone>;
  failed: Array<[string, string]>;
  old_copies: Array<string>;
  trusted: boolean;
}

export interface WiringPlan {
  wishes: Array<WiringWish>;
  changes: Array<NacreValuesReportsFileChange>;
  left_alone: Array<LeftAlone>;
  kept: Array<LeftAlone>;
  servers: Array<[string, Array<string>]>;
  commands: Array<HostCommand>;
  notes: Array<[string, string]>;
  is_removal: boolean;
  own_memories: Array<OwnMemory>;
  set: Array<HostSetting>;
  given_back: Array<HostSetting>;
}

export interface WiringPreview {
  files: Array<ChangedFile>;
  unchanged: number;
  commands: Array<HostCommand>;
  left_alone: Array<LeftAlone>;
  own_memories: Array<OwnMemory>;
  notes: Array<string>;
}

export interface WiringWish {
  host: string;
  project: string | null;
  plain: boolean;
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

export type NacreDataImportsAction = "add" | "bring back" | "duplicate" | "known" | "trust" | "update";

export interface NacreDataImportsStep {
  memory: Memory;
  action: NacreDataImportsAction;
  reason: string | null;
  usage: Usage | null;
  same_as: string | null;
}

export interface NacreDataUndoStep {
  action: string;
  change: Change;
  memory: Memory | null;
  clashes: Array<string>;
}

export interface NacreHomeViewsPlace {
  project: string | null;
  known: Array<string>;
  is_known: boolean;
  namesake: string | null;
}

export interface NacreHomeViewsStep {
  memory: Memory;
  since: string;
  until: string | null;
  superseded_by: string | null;
  reason: string | null;
  is_asked: boolean;
}

export interface NacreMemoriesVectorsTrial {
  dimensions: number;
  seconds: number;
}

export interface NacreReviewConsolidateStep {
  action: DreamAction;
  ends: Array<string>;
  into: string | null;
  subject: string;
  why: string;
  links: Array<string>;
  words: string;
  by: string;
  mark: string;
  project: string;
}

export interface NacreSetupModelsTrial {
  name: string;
  model: string;
  answer: string;
  seconds: number;
  tokens: NacreValuesModelsTokens;
  cost: number | null;
  is_by_subscription: boolean;
}

export interface NacreValuesGatewayChat {
  channel: string;
  id: string;
  kind: ChatType;
  account: string;
  thread: string;
}

export interface NacreValuesMemoryCandidate {
  kind: Kind;
  subject: string;
  content: string;
  turns: Array<string>;
  importance: number;
  expiry: Expiry;
  tags: Array<string>;
  speaker: Speaker;
  trust: Trust;
  canonical_key: string | null;
  confidence: Confidence;
  confidence_score: number | null;
  held: Why | null;
  detail: string;
  score: number;
  nodded: boolean;
  mixed: boolean;
}

export interface NacreValuesMemorySource {
  session: string | null;
  turns: Array<string>;
  file: string | null;
}

export interface NacreValuesModelsPlace {
  host: string;
  is_here: boolean;
  is_local: boolean;
  price: string | null;
  model: string;
}

export interface NacreValuesModelsTokens {
  input: number;
  output: number;
  cached: number;
  written: number;
}

export interface NacreValuesRecallCandidate {
  slug: string;
  score: number;
  named: boolean;
}

export interface NacreValuesReportsFileChange {
  path: string;
  before: string | null;
  after: string | null;
  hosts: Array<string>;
  what: string;
  mode: number;
  is_pristine: boolean;
}

export type NacreValuesSessionAction = "delegate" | "edit" | "fetch" | "other" | "plan" | "read" | "run" | "search";

export interface NacreValuesSessionFileChange {
  path: string;
  session: Session;
  project: string | null;
  seq: number;
  time: string | null;
  edits: number;
  reads: number;
  commands: Array<ToolCall>;
  failed: number;
  request: Turn | null;
  words: Turn | null;
}

export interface NacreValuesSessionTokens {
  input: number;
  cached: number;
  output: number;
}

export interface NacreVaultDocumentsNote {
  outcome: MergeOutcome;
  path: string;
  memory: string | null;
  subject: string | null;
  other: string | null;
  fields: Array<string>;
}

export interface NacreGatewayEngineChat {
  session: ChatSession;
  messages: Array<ChatMessage>;
  summary: string;
  path: string;
  waiting: Array<ChatMessage>;
  is_answering: boolean;
}

export interface NacreServerSpacesNote {
  at: string | null;
  account: string;
  action: string;
  subject: string;
  outcome: string;
}

export type Choice = "keep-both" | "keep-new" | "keep-old";

export interface DeedFilter {
  project?: string | null;
  tool?: string | null;
  since?: string | null;
  until?: string | null;
}

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

export interface ForgetRequest {
  sessions?: Array<string>;
  memories?: Array<string>;
  project?: string | null;
  match?: string | null;
  regex?: boolean;
  before?: string | null;
}

export interface GetRequest {
  reference: string;
  update?: boolean;
  session?: string | null;
}

export type HookEvent = "pre-compact" | "prompt" | "session-end" | "session-start" | "tool" | "turn-end";

export interface ImportOptionsInput {
  path: string;
  source?: string;
  trust?: boolean;
  project?: string | null;
  vectors?: boolean;
}

export interface IngestOptions {
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
}

export type Mode = "browse" | "hybrid" | "lexical" | "vector";

export type Moment = "prompt" | "start";

export interface NewLink {
  source: string;
  relation: Relation;
  target: string;
  strength?: number | null;
  since?: string | null;
  until?: string | null;
  reason?: string | null;
  origin?: string | null;
}

export type Occasion = "clear" | "compact" | "resume" | "startup";

export interface PushedDocument {
  path: string;
  text: string | null;
  base?: string | null;
}

export interface PushedSession {
  session: SessionInput;
  project: string | null;
  turns: Array<PushedTurn>;
}

export interface PushedTurn {
  id: string;
  speaker: Speaker;
  text: string;
  time?: string | null;
  calls?: string;
  flags?: number;
  trust?: Trust;
  author?: string | null;
}

export type Relates = "alternative_to" | "builds_on" | "contradicts" | "depends_on" | "elaborates" | "part_of" | "related_to" | "specializes";

export type Relation = "alternative_to" | "builds_on" | "calls" | "contradicts" | "depends_on" | "elaborates" | "imports" | "inherits" | "part_of" | "related_to" | "specializes" | "supersedes";

export interface RetireRequest {
  references?: Array<string>;
  subjects?: Array<string>;
  contains?: Array<string>;
  like?: Array<string>;
  reason?: string | null;
  persist?: boolean;
}

export interface Said {
  speaker: Speaker;
  text: string;
}

export interface SessionInput {
  tool: string;
  native_id: string;
  title?: string | null;
  cwd?: string | null;
  branch?: string | null;
  repository?: string | null;
  label?: string | null;
  kind?: SessionKind;
  parent?: string | null;
  started?: string | null;
  tool_version?: string | null;
  model?: string | null;
  tokens?: Tokens | null;
}

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

export interface SessionStateInput {
  given?: Array<string>;
  asked?: string;
  heard?: Array<string>;
  signals?: number;
  signal_mark?: number;
  signal_at?: number;
  turns?: number;
  nudges?: number;
  stored_mark?: number;
  started?: number;
  handed?: boolean;
  name?: string;
  folder?: string;
  seen?: number;
  ended?: number;
  after?: Array<string>;
  owed?: string;
  prompts?: number;
  held_out?: boolean;
  limited?: Array<string>;
}

export interface SignalLimits {
  min_importance?: number;
  most_at_once?: number;
  cooldown_seconds?: number;
  most_per_session?: number;
  max_age_seconds?: number;
}

export interface Source {
  session?: string | null;
  turns?: Array<string>;
  file?: string | null;
}

export interface StoreRequest {
  content: string;
  subject?: string | null;
  kind?: Kind;
  importance?: number;
  expiry?: Expiry;
  expires_on?: string | null;
  scope?: Scope;
  project?: string | null;
  folder?: string | null;
  tags?: Array<string>;
  triggers?: Array<string>;
  trigger_times?: number;
  canonical_key?: string | null;
  speaker?: Speaker | null;
  trust?: Trust;
  quote?: string | null;
  source?: Source;
  author?: string | null;
  force?: boolean;
  online_dedup?: boolean | null;
  dedup_threshold?: number | null;
}

export interface Tokens {
  input?: number;
  cached?: number;
  output?: number;
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
  plain?: boolean;
  slot?: boolean;
  tool_hook?: boolean;
  isolates?: boolean;
  introduces?: boolean;
}

export interface Operations {
  "db-stats": [Record<string, never>, Stats];
  "db-vacuum": [Record<string, never>, Vacuumed];
  "doctor": [{
    repair?: boolean;
  }, Array<Check>];
  "overview": [Record<string, never>, Overview];
  "doctor-deep": [{
    everything?: boolean;
    repair?: boolean;
  }, Array<Check>];
  "traces": [{
    task?: Task | null;
    since?: string | null;
    limit?: number;
  }, Array<Trace>];
  "trace": [{
    reference: string;
  }, Trace];
  "db-rebuild": [{
    vectors?: boolean;
  }, IngestReport];
  "db-reset": [Record<string, never>, string | null];
  "backup-verify": [{
    backup: string;
  }, Array<Check>];
  "status": [Record<string, never>, Status];
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
  "usefulness": [Record<string, never>, Usefulness];
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
  "context-given": [{
    session: string;
    state?: SessionStateInput | null;
  }, null];
  "hook": [{
    host: string;
    event: HookEvent;
    session?: string;
    folder?: string | null;
    prompt?: string;
    occasion?: Occasion;
    transcript?: string | null;
    is_apart?: boolean;
    tool?: string;
    arguments?: string;
    alone?: boolean;
    budget_tokens?: number | null;
    goes_on?: boolean;
    signals?: SignalLimits | null;
  }, HookAnswer];
  "pointers-on": [{
    folder: string;
  }, string | null];
  "handoff": [{
    folder?: string | null;
    store?: boolean;
    session?: string | null;
    words?: string | null;
  }, HandoffView];
  "backup-create": [{
    target: string;
    overwrite?: boolean;
  }, BackupReport];
  "forget-plan": [ForgetRequest, ForgetPlan];
  "forgotten": [Record<string, never>, Array<Forgotten>];
  "forget-allow-again": [{
    reference: string;
  }, Forgotten];
  "forget": [ForgetRequest, ForgetReport];
  "import-plan": [ImportOptionsInput, ImportPlan];
  "export": [{
    form?: string;
    sessions?: boolean;
    project?: string | null;
    include_retired?: boolean;
    target: string;
    overwrite?: boolean;
  }, ExportReport];
  "import": [ImportOptionsInput, ImportReport];
  "backup-restore": [{
    backup: string;
    target?: string | null;
    replace?: boolean;
  }, RestoreReport];
  "scrub": [{
    dry_run?: boolean;
    history?: boolean;
    remove_copies?: boolean;
    vectors?: boolean;
  }, ScrubReport];
  "sync": [{
    remote?: string | null;
    dry_run?: boolean;
    timeout_seconds?: number;
    accept_rewritten?: boolean;
    patience_seconds?: number;
  }, Synced];
  "log": [{
    reference?: string | null;
    project?: string | null;
    action?: string | null;
    limit?: number;
    offset?: number;
  }, Array<Listed>];
  "undo": [{
    operation?: string | null;
    force?: boolean;
  }, Undoing];
  "diff": [{
    reference?: string | null;
  }, OperationDiff];
  "undo-plan": [{
    operation?: string | null;
    force?: boolean;
  }, Undoing];
  "commit": [Record<string, never>, Committed];
  "archive-status": [Record<string, never>, ArchiveStatus];
  "session-restore": [{
    reference: string;
    folder?: string | null;
  }, Restored];
  "place": [{
    name?: string | null;
    folder?: string | null;
  }, NacreHomeViewsPlace];
  "project-tie": [{
    project: string;
    folder: string;
  }, NacreHomeViewsPlace];
  "page": [{
    project?: string | null;
  }, string];
  "cost": [Record<string, never>, CostReport];
  "hosts-plan": [WireRequest, WiringPlan];
  "hosts-wire": [WireRequest, WiringDone];
  "hosts": [Record<string, never>, Array<HostState>];
  "hosts-preview": [WireRequest, WiringPreview];
  "doctor-hosts": [Record<string, never>, Array<Check>];
  "ingest": [IngestOptions, IngestReport];
  "ingest-plan": [IngestOptions, IngestPlan];
  "ingest-estimate": [IngestOptions, Estimate];
  "store": [StoreRequest, StoreOutcome];
  "store-rehearse": [StoreRequest, Rehearsal];
  "extract-propose": [{
    path?: string | null;
    session?: string | null;
    model?: string | null;
  }, Array<Proposal>];
  "extract": [{
    text?: string;
    session?: string | null;
    by_model?: boolean;
  }, Extracted];
  "graph-central": [{
    limit?: number;
    project?: string | null;
  }, Central];
  "graph-gaps": [{
    limit?: number;
    project?: string | null;
  }, Gaps];
  "graph-components": [{
    limit?: number;
    project?: string | null;
  }, Components];
  "graph-brief": [{
    project?: string | null;
  }, Brief];
  "graph-link": [{
    links: Array<NewLink>;
  }, LinkChange];
  "graph-unlink": [{
    source: string;
    target: string;
    relation?: string | null;
  }, LinkChange];
  "graph-invalidate": [{
    source: string;
    target: string;
    relation?: string | null;
    at?: string | null;
  }, LinkChange];
  "graph-unlink-origin": [{
    origin: string;
    project?: string | null;
  }, LinkChange];
  "graph-list": [{
    reference?: string | null;
    relations?: Array<string>;
    origins?: Array<string>;
    as_of?: string | null;
    ended?: boolean;
    project?: string | null;
    limit?: number;
    offset?: number;
  }, LinkPage];
  "graph-show": [{
    reference: string;
    depth?: number;
    direction?: "both" | "inbound" | "outbound";
    relations?: Array<string>;
    as_of?: string | null;
    limit?: number;
  }, Traversal];
  "graph-map": [{
    project?: string | null;
    kinds?: Array<Kind>;
    relations?: Array<string>;
    alike?: boolean;
    as_of?: string | null;
    limit?: number;
  }, GraphMap];
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
  "retire-plan": [RetireRequest, RetirePlan];
  "unretire": [{
    references: Array<string>;
  }, BroughtBack];
  "retired": [Record<string, never>, Array<Memory>];
  "retired-standing": [Record<string, never>, Array<StandingRetirement>];
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
  "todo-done": [{
    references: Array<string>;
  }, Array<Memory>];
  "retire": [RetireRequest, Array<Memory>];
  "edges": [{
    reference?: string | null;
    limit?: number;
  }, Array<UsedTogether>];
  "history": [{
    reference: string;
  }, Array<NacreHomeViewsStep>];
  "look": [GetRequest, MemoryView];
  "get": [GetRequest, Memory];
  "embed": [Record<string, never>, Standing];
  "embed-plan": [{
    name: string;
  }, Plan];
  "embed-try": [{
    name: string;
  }, NacreMemoriesVectorsTrial];
  "embed-switch": [{
    name: string;
  }, Embedded];
  "embed-resume": [Record<string, never>, Embedded];
  "deep-recall": [{
    text: string;
    filter?: Filter;
    recent?: Array<Said>;
    here?: string | null;
    update?: boolean;
    session?: string | null;
  }, DeepResult];
  "check": [Record<string, never>, Array<PinCheck>];
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
    expand?: boolean;
    rerank?: boolean;
    is_prompt?: boolean;
  }, RecallResult];
  "feedback": [{
    reply: string;
    references?: Array<string>;
    session?: string | null;
    stored?: Array<string>;
  }, FeedbackReport];
  "feedback-judge": [{
    references: Array<string>;
    good: boolean;
  }, FeedbackReport];
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
    expand?: boolean;
    rerank?: boolean;
    is_prompt?: boolean;
    offset?: number;
    aspect?: string;
    role?: string;
  }, RecallResult];
  "alike": [{
    project?: string | null;
    limit?: number;
  }, Alike];
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
  "reflect": [{
    limit?: number;
    project?: string | null;
  }, Reflection];
  "reflect-answer": [{
    reference: string;
    text?: string | null;
    link?: Relates | null;
    keep?: Choice | null;
    skip?: boolean;
    lesson?: boolean;
  }, Reflected];
  "review-undo": [{
    reference: string;
  }, Memory];
  "unanswered": [{
    days?: number;
    project?: string | null;
    min_times?: number;
    limit?: number;
  }, Unanswered];
  "unanswered-dismiss": [{
    reference: string;
  }, UnansweredQuestion];
  "unanswered-todo": [{
    reference: string;
  }, StoreOutcome];
  "dream-plan": [{
    project?: string | null;
    tier?: number;
    most?: number | null;
    writer?: boolean;
    backfill?: boolean;
  }, DreamPlan];
  "dream": [{
    project?: string | null;
    tier?: number;
    most?: number | null;
    writer?: boolean;
    backfill?: boolean;
    steps?: Array<string> | null;
    first?: boolean;
  }, DreamReport];
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
  "search-chats": [{
    query: string;
    limit?: number;
    channel?: string | null;
    session?: string | null;
    leave_out?: string | null;
    since?: string | null;
    until?: string | null;
  }, Passages];
  "resume": [{
    what?: string | null;
    folder?: string | null;
  }, Resumption];
  "did": [{
    path: string;
    wanted?: DeedFilter;
    reads?: boolean;
    commands?: boolean;
    limit?: number;
    offset?: number;
  }, FileHistory];
  "fix": [{
    error: string;
    wanted?: DeedFilter;
    limit?: number;
    repairs?: number;
  }, FixResult];
  "chores": [{
    seconds?: number;
  }, ChoresReport];
  "flush": [{
    session?: string | null;
    transcript?: string | null;
    seconds?: number;
  }, FlushReport];
  "auth": [Record<string, never>, SigningIn];
  "auth-set": [{
    provider: string;
    secret: string;
  }, string];
  "auth-remove": [{
    provider: string;
  }, Array<string>];
  "writer": [Record<string, never>, WriterStatus];
  "writer-set": [{
    writer: string;
    tokens_per_day?: number | null;
    dollars_per_day?: number | null;
  }, WriterStatus];
  "writer-pause": [Record<string, never>, WriterStatus];
  "writer-resume": [Record<string, never>, WriterStatus];
  "writer-off": [Record<string, never>, WriterStatus];
  "models": [Record<string, never>, Array<Offer>];
  "models-test": [{
    name?: string;
  }, NacreSetupModelsTrial];
  "config": [Record<string, never>, Array<SettingView>];
  "config-get": [{
    key: string;
  }, SettingView];
  "config-set": [{
    key: string;
    value: unknown;
  }, SettingView];
  "config-unset": [{
    key: string;
  }, SettingView];
  "quickstart": [Record<string, never>, QuickstartResult];
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
  "graph-about": [{
    name: string;
    project?: string | null;
    near?: string | null;
    limit?: number;
  }, CodeAnswer];
  "graph-callers": [{
    name: string;
    project?: string | null;
    near?: string | null;
    limit?: number;
    depth?: number;
  }, CodeAnswer];
  "graph-forget-code": [{
    project: string;
  }, ForgottenCode];
  "graph-impact": [{
    name: string;
    project?: string | null;
    near?: string | null;
    limit?: number;
    symbol?: string | null;
    depth?: number;
  }, CodeAnswer];
  "graph-importers": [{
    name: string;
    project?: string | null;
    near?: string | null;
    limit?: number;
  }, CodeAnswer];
  "graph-ingest-code": [{
    folder: string;
    project?: string | null;
    force?: boolean;
    max_files?: number;
    seconds?: number;
  }, CodeReport];
  "graph-stale": [{
    project?: string | null;
    limit?: number;
    days?: number;
    folder?: string | null;
    memory?: string | null;
  }, Staleness];
  "keys": [{
    space?: string | null;
  }, Array<Key>];
  "keys-create": [{
    space?: string | null;
    account?: string | null;
    role?: Role;
    days?: number;
  }, NewKey];
  "keys-revoke": [{
    id: string;
    space?: string | null;
  }, Key];
  "move": [{
    to?: string | null;
    source?: string | null;
    tenant?: string | null;
    questions?: number;
  }, MoveReport];
  "remote": [Record<string, never>, RemoteStanding];
  "remote-add": [{
    url: string;
    key?: string;
    private?: boolean;
  }, Exchanged];
  "remote-changes": [{
    since?: number;
    ledger_since?: number;
  }, ServerChanges];
  "remote-push": [{
    documents: Array<PushedDocument>;
    ledger: Array<string>;
  }, Pushed];
  "remote-remove": [Record<string, never>, RemoteStanding];
  "remote-sync": [Record<string, never>, Exchanged];
  "remote-turns": [{
    sessions: Array<PushedSession>;
  }, number];
  "remote-versions": [{
    at: number;
    names: Array<string>;
  }, Array<ServerDocument>];
  "share": [{
    reference: string;
    space: string;
    scope?: Scope | null;
  }, Shared];
  "spaces": [Record<string, never>, Array<Space>];
  "spaces-add": [{
    space: string;
    account: string;
    role?: Role;
  }, Array<Member>];
  "spaces-create": [{
    space: string;
    kind?: SpaceKind;
    raising?: Raising;
  }, Space];
  "spaces-log": [{
    limit?: number;
  }, Array<NacreServerSpacesNote>];
  "spaces-members": [{
    space?: string | null;
  }, Array<Member>];
  "spaces-remove": [{
    space: string;
    account: string;
  }, Array<Member>];
}
