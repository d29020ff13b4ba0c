-- insert_model_call --
-- A recorded call stays unchanged.
INSERT INTO model_calls
    (id, at, day, task, model, background, input, output, cached, written, cost, seconds, outcome, prompt, answer, error, key)
VALUES
    (:id, :at, :day, :task, :model, :background, :input, :output, :cached, :written, :cost, :seconds, :outcome, :prompt,
    :answer, :error, :key)
ON CONFLICT DO NOTHING;

-- finish_model_call --
-- The actual usage, and the texts.
UPDATE model_calls SET input = :input, output = :output, cached = :cached, written = :written, cost = :cost,
    seconds = :seconds, outcome = :outcome, prompt = :prompt, answer = :answer, error = :error, key = :key
WHERE id = :id;

-- sum_background_cost --
-- Of all models since a day.
SELECT coalesce(sum(cost), 0) FROM model_calls WHERE day >= :since AND background = 1;

-- sum_background_tokens --
-- Of a provider's models on a day, for conversations or for other tasks.
SELECT coalesce(sum(input + output + cached + written), 0), count(*)
FROM model_calls WHERE day = :day AND background = 1
    AND (model = :provider OR substr(model, 1, length(:provider) + 1) = :provider || ':')
    AND CASE WHEN task = 'chat' THEN 1 ELSE 0 END = :is_chat;

-- sum_costs_by_task --
-- Since a day, and on the current day.
SELECT task, count(*) FILTER (WHERE day = :today), coalesce(sum(cost) FILTER (WHERE day = :today), 0), count(*),
    count(*) FILTER (WHERE outcome = 'failed'), sum(input + output + cached + written), coalesce(sum(cost), 0),
    count(*) FILTER (WHERE cost IS NULL)
FROM model_calls WHERE day >= :since GROUP BY task ORDER BY 7 DESC, 4 DESC, task;

-- get_model_health --
-- Only a model that failed has one.
SELECT model, until, told FROM model_health WHERE model = :model;

-- set_model_health --
-- It failed.
INSERT INTO model_health (model, until, told) VALUES (:model, :until, :told)
ON CONFLICT (model) DO UPDATE SET until = excluded.until, told = excluded.told;

-- clear_model_health --
-- It responds again.
DELETE FROM model_health WHERE model = :model;

-- find_model_answer --
-- If it is not too old.
SELECT answer FROM model_calls WHERE key = :key AND at >= :since ORDER BY at DESC LIMIT 1;

-- drop_model_answer --
-- It was unusable.
UPDATE model_calls SET key = NULL WHERE key = :key;

-- list_traces --
-- Calls with texts, latest first.
SELECT * FROM model_calls
WHERE prompt <> '' AND (:task IS NULL OR task = :task) AND (:since IS NULL OR at >= :since)
ORDER BY at DESC, id DESC LIMIT :limit;

-- find_traces --
-- By the start or end of the id.
SELECT * FROM model_calls
WHERE prompt <> '' AND (id = :reference OR (length(:reference) >= 4 AND (
    substr(id, 1, length(:reference)) = :reference OR substr(id, length(id) - length(:reference) + 1) = :reference
))) ORDER BY at DESC, id DESC LIMIT 5;

-- list_call_texts --
-- Of all calls.
SELECT prompt || answer || error FROM model_calls WHERE prompt <> '';

-- clear_call_texts --
-- Each can quote forgotten text.
UPDATE model_calls SET key = NULL, prompt = '', answer = '', error = '' WHERE prompt <> '';

-- prune_call_texts --
-- Old texts, and texts beyond the limit.
UPDATE model_calls SET key = NULL, prompt = '', answer = '', error = ''
WHERE prompt <> '' AND (at < :since OR id NOT IN (
    SELECT id FROM model_calls WHERE prompt <> '' ORDER BY at DESC, id DESC LIMIT :most
));

-- prune_call_answers --
-- Too old to be reused.
UPDATE model_calls SET key = NULL, answer = substr(answer, 1, :characters) WHERE key IS NOT NULL AND at < :since;

-- prune_model_calls --
-- Too old to be shown.
DELETE FROM model_calls WHERE day < :before;
