-- insert_model_call --
-- A recorded call stays unchanged.
INSERT INTO model_calls
    (id, at, day, task, model, background, input, output, cached, written, cost, seconds, outcome)
VALUES
    (:id, :at, :day, :task, :model, :background, :input, :output, :cached, :written, :cost, :seconds, :outcome)
ON CONFLICT DO NOTHING;

-- finish_model_call --
-- The actual usage.
UPDATE model_calls SET input = :input, output = :output, cached = :cached, written = :written, cost = :cost,
    seconds = :seconds, outcome = :outcome
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
SELECT answer FROM model_answers WHERE key = :key AND at >= :since;

-- insert_model_answer --
-- Replaces an earlier answer.
INSERT INTO model_answers (key, at, model, answer) VALUES (:key, :at, :model, :answer)
ON CONFLICT (key) DO UPDATE SET at = excluded.at, model = excluded.model, answer = excluded.answer;

-- delete_model_answer --
-- It was unusable.
DELETE FROM model_answers WHERE key = :key;

-- clear_model_answers --
-- Each can quote forgotten text.
DELETE FROM model_answers;

-- prune_model_answers --
-- Old answers, and answers beyond the limits.
DELETE FROM model_answers WHERE at < :since OR key IN (
    SELECT key FROM (
        SELECT key, sum(length(answer)) OVER latest AS size, row_number() OVER latest AS place
        FROM model_answers WINDOW latest AS (ORDER BY at DESC, key)
    ) WHERE size > :most_characters OR place > :most
);

-- prune_model_calls --
-- Too old to be shown.
DELETE FROM model_calls WHERE day < :before;
