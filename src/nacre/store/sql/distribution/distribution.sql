-- count_nodes --
-- How many nodes hold rows, where the extension Citus is there at all.
SELECT count(*) FROM pg_dist_node WHERE isactive AND shouldhaveshards

-- has_citus --
SELECT 1 FROM pg_extension WHERE extname = 'citus'

-- sees_all --
-- Whether row-level security holds nothing back: rows are copied as this login sees them.
SELECT rolsuper FROM pg_roles WHERE rolname = current_user

-- prepare --
-- Triggers run on the node that holds the row, and touch no other tenant's.
SET LOCAL citus.enable_unsafe_triggers = on;
SET LOCAL citus.multi_shard_modify_mode = 'sequential';
SET LOCAL citus.propagate_set_commands = local;
SET LOCAL client_min_messages = warning;
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0

-- be_quiet --
-- Rows come as they are: no trigger makes others of them.
SET LOCAL session_replication_role = replica

-- list_local --
-- Tables of tenants that are not distributed yet, those that others refer to first.
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'nacre_rows' AND c.relkind = 'r' AND c.relname <> 'schema_version'
    AND NOT EXISTS (SELECT 1 FROM pg_dist_partition p WHERE p.logicalrelid = c.oid)
    AND NOT EXISTS (SELECT 1 FROM pg_dist_shard s WHERE s.logicalrelid = c.oid)
ORDER BY c.oid

-- distribute_first --
-- All others lie where this one's rows do.
SELECT create_distributed_table(CAST(:held AS regclass), 'tenant', colocate_with => 'none', shard_count => :shards)

-- distribute_beside --
SELECT create_distributed_table(CAST(:held AS regclass), 'tenant', colocate_with => 'nacre_rows.memories')

-- drop_copy --
-- What the coordinator held before its rows went to the nodes.
SELECT truncate_local_data_after_distributing_table(CAST(:held AS regclass))

-- list_functions --
-- Those that nodes do not know yet.
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
-- As on one server, a tenant's words are told from others' by the view that reads them, so that their index can be used;
-- what is written is held against the tenant.
CREATE POLICY read_by_view ON nacre_rows.words FOR SELECT TO nacre_tenant USING (true)

-- let_in --
-- The coordinator signs in at the nodes as whoever asks.
ALTER ROLE nacre_tenant LOGIN

-- give_operator --
-- Citus carries no operators.
SELECT nodename, nodeport, result FROM run_command_on_workers(
    'CREATE OPERATOR nacre.->> (LEFTARG = TEXT, RIGHTARG = INTEGER, FUNCTION = nacre.json_element)'
) WHERE NOT success AND result NOT LIKE '%already exists%'

-- number_rows --
-- Only the coordinator numbers rows: what holds its counter still is no matter of the nodes.
ALTER FUNCTION nacre.keep_rows_above SET citus.enable_ddl_propagation = off

-- know_tenant --
-- Of one connection it is a constant, by which the coordinator finds the node; on a node it is not, as connections there
-- may serve one tenant after the other.
SET LOCAL citus.enable_ddl_propagation = off;
ALTER FUNCTION nacre.tenant() IMMUTABLE

-- know_tenant_there --
SELECT nodename, nodeport, result FROM run_command_on_workers(
    'DO $$BEGIN SET LOCAL citus.enable_ddl_propagation = off; ALTER FUNCTION nacre.tenant() STABLE; END$$'
) WHERE NOT success
