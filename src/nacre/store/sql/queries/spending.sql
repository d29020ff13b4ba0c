-- insert_model_call --
-- Before the call, or afterwards if no caller waits for it. Repeated inserts count once.
INSERT INTO model_calls
    (id, at, day, task, model, background, input, output, cached, written, cost, seconds, outcome, trace)
VALUES
    (:id, :at, :day, :task, :model, :background, :input, :output, :cached, :written, :cost, :seconds, :outcome, :trace)
ON CONFLICT DO NOTHING;

-- finish_model_call --
-- The actual usage.
UPDATE model_calls SET input = :input, output = :output, cached = :cached, written = :written, cost = :cost,
    seconds = :seconds, outcome = :outcome
WHERE id = :id;

-- sum_background_cost --
-- The day's background cost of each model: total, and for one task.
SELECT model, coalesce(sum(cost), 0), coalesce(sum(cost) FILTER (WHERE task = :task), 0)
FROM model_calls WHERE day = :day AND background = 1 GROUP BY model;

-- sum_background_tokens --
-- The day's background tokens of a provider's models: for conversations, or for all else.
SELECT coalesce(sum(input + output + cached + written), 0), count(*)
FROM model_calls WHERE day = :day AND background = 1
    AND (model = :provider OR substr(model, 1, length(:provider) + 1) = :provider || ':')
    AND CASE WHEN task = 'chat' THEN 1 ELSE 0 END = :is_chat;

-- sum_model_calls --
-- Since a day.
SELECT day, task, model, background, count(*), count(*) FILTER (WHERE outcome = 'failed'), sum(input), sum(output), sum(cached), sum(written),
    coalesce(sum(cost), 0), count(*) FILTER (WHERE cost IS NULL), sum(seconds), coalesce(sum(cost) FILTER (WHERE outcome <> 'done'), 0)
FROM model_calls WHERE day >= :since GROUP BY day, task, model, background ORDER BY day, task, model, background;

-- mean_model_calls --
-- The mean usage of recent calls of a task and a model.
SELECT count(*), avg(input + cached + written), avg(output), avg(seconds) FROM (
    SELECT input, cached, written, output, seconds FROM model_calls
    WHERE task = :task AND model = :model AND outcome = 'done' ORDER BY at DESC LIMIT 500
);

-- count_model_refusal --
-- One more refused call.
INSERT INTO model_refusals (day, task, model, reason, times) VALUES (:day, :task, :model, :reason, 1)
ON CONFLICT (day, task, model, reason) DO UPDATE SET times = model_refusals.times + 1;

-- list_model_refusals --
-- Since a day.
SELECT day, task, model, reason, times FROM model_refusals WHERE day >= :since ORDER BY day, task, model, reason;

-- get_model_health --
-- Of a model that failed.
SELECT model, until, told FROM model_health WHERE model = :model;

-- set_model_health --
-- It failed.
INSERT INTO model_health (model, until, told) VALUES (:model, :until, :told)
ON CONFLICT (model) DO UPDATE SET until = excluded.until, told = excluded.told;

-- clear_model_health --
-- It answers again.
DELETE FROM model_health WHERE model = :model;

-- find_model_answer --
-- Not older than a time.
SELECT answer FROM model_answers WHERE key = :key AND at >= :since;

-- insert_model_answer --
-- The latest counts.
INSERT INTO model_answers (key, at, model, answer) VALUES (:key, :at, :model, :answer)
ON CONFLICT (key) DO UPDATE SET at = excluded.at, model = excluded.model, answer = excluded.answer;

-- delete_model_answer --
-- It was unusable.
DELETE FROM model_answers WHERE key = :key;

-- clear_model_answers --
-- Any may quote forgotten text.
DELETE FROM model_answers;

-- prune_model_answers --
-- Old ones, and the oldest beyond a number of characters or answers.
DELETE FROM model_answers WHERE at < :since OR key IN (
    SELECT key FROM (
        SELECT key, sum(length(answer)) OVER latest AS size, row_number() OVER latest AS place
        FROM model_answers WINDOW latest AS (ORDER BY at DESC, key)
    ) WHERE size > :most_characters OR place > :most
);

-- prune_model_calls --
-- Too old to be shown.
DELETE FROM model_calls WHERE day < :before;

-- prune_model_refusals --
-- As above.
DELETE FROM model_refusals WHERE day < :before;
