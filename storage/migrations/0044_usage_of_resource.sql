-- What was charged for a call, without reading the whole usage log of the workspace.
create index usage_logs_resource on usage_logs (resource_id, position) where resource_id is not null;
