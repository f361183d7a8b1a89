-- Views count the tasks and attempts of a large run by state, and read the few that they show.
CREATE INDEX task_by_state ON task (run, CASE WHEN json_valid(json) THEN json_extract(json, '$.state') END, ord);
CREATE INDEX attempt_by_state ON attempt (run, CASE WHEN json_valid(json) THEN json_extract(json, '$.state') END, ord);
