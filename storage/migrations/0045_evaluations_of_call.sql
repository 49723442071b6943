-- The list of evaluations: of a call, and of a user.
create index judge_evaluations_call on judge_evaluations (call_id) where call_id is not null;
create index judge_evaluations_user on judge_evaluations (workspace_id, user_id, created_at);
