-- count_nodes --
-- The number of nodes with rows, if the extension Citus is installed.
SELECT count(*) FROM pg_dist_node WHERE isactive AND shouldhaveshards

-- has_citus --
SELECT 1 FROM pg_extension WHERE extname = 'citus'

-- sees_all --
-- Whether this login bypasses row-level security, because it copies the rows that it sees.
SELECT rolsuper FROM pg_roles WHERE rolname = current_user

-- prepare --
-- Triggers run on the node with the row, and touch no other tenant's rows.
SET LOCAL citus.enable_unsafe_triggers = on;
SET LOCAL citus.multi_shard_modify_mode = 'sequential';
SET LOCAL citus.propagate_set_commands = local;
SET LOCAL client_min_messages = warning;
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0

-- be_quiet --
-- No trigger changes the rows.
SET LOCAL session_replication_role = replica

-- list_local --
-- Tables of tenants that are not distributed yet, referenced ones first.
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'nacre_rows' AND c.relkind = 'r' AND c.relname <> 'schema_version'
    AND NOT EXISTS (SELECT 1 FROM pg_dist_partition p WHERE p.logicalrelid = c.oid)
    AND NOT EXISTS (SELECT 1 FROM pg_dist_shard s WHERE s.logicalrelid = c.oid)
ORDER BY c.oid

-- distribute_first --
-- All other tables are placed with this table's rows.
SELECT create_distributed_table(CAST(:held AS regclass), 'tenant', colocate_with => 'none', shard_count => :shards)

-- distribute_beside --
SELECT create_distributed_table(CAST(:held AS regclass), 'tenant', colocate_with => 'nacre_rows.memories')

-- drop_copy --
-- The coordinator's rows, after they were distributed.
SELECT truncate_local_data_after_distributing_table(CAST(:held AS regclass))

-- list_functions --
-- Functions that the nodes do not have yet.
SELECT CAST(CAST(f.oid AS regprocedure) AS text) FROM pg_proc f
WHERE f.pronamespace IN (to_regnamespace('nacre'), to_regnamespace('nacre_rows')) AND NOT EXISTS (
    SELECT 1 FROM pg_catalog.pg_dist_object o WHERE o.classid = CAST('pg_proc' AS regclass) AND o.objid = f.oid
)

-- distribute_function --
SELECT create_distributed_function(:held)

-- grant_words --
GRANT SELECT, INSERT, UPDATE, DELETE ON nacre_rows.words TO nacre_tenant

-- close_words --
DROP POLICY IF EXISTS read_by_view ON nacre_rows.words

-- open_words --
-- As on one server, the view that reads a tenant's words separates them from others', so that their index can be
-- used. Writes are checked against the tenant.
CREATE POLICY read_by_view ON nacre_rows.words FOR SELECT TO nacre_tenant USING (true)

-- let_in --
-- The coordinator signs in at the nodes as the caller.
ALTER ROLE nacre_tenant LOGIN

-- give_operator --
-- Citus does not distribute operators.
SELECT nodename, nodeport, result FROM run_command_on_workers(
    'CREATE OPERATOR nacre.->> (LEFTARG = TEXT, RIGHTARG = INTEGER, FUNCTION = nacre.json_element)'
) WHERE NOT success AND result NOT LIKE '%already exists%'

-- number_rows --
-- Only the coordinator numbers rows, so the nodes do not need the function.
ALTER FUNCTION nacre.keep_rows_above SET citus.enable_ddl_propagation = off

-- know_tenant --
-- Within a connection it is a constant, by which the coordinator finds the node. On a node it is not, because
-- connections there may serve several tenants in turn.
SET LOCAL citus.enable_ddl_propagation = off;
ALTER FUNCTION nacre.tenant() IMMUTABLE

-- know_tenant_there --
SELECT nodename, nodeport, result FROM run_command_on_workers(
    'DO $$BEGIN SET LOCAL citus.enable_ddl_propagation = off; ALTER FUNCTION nacre.tenant() STABLE; END$$'
) WHERE NOT success
