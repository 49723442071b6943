-- Charges without a hold, what each charge was for, payments with their outcome, prices, and the rent of numbers.

alter table entries drop constraint entries_kind_check;
alter table entries add constraint entries_kind_check
  check (kind in ('top_up', 'hold', 'hold_grow', 'settle', 'void', 'charge', 'refund'));

-- What an entry that took money, or gave it back, was for. The entry has the amounts and the balances around it.
create table usage_logs (
  entry_id uuid primary key references entries (id),
  workspace_id uuid not null references workspaces (id),
  -- That of the entry: the order in which the workspace's money moved.
  position bigint not null unique,
  service text not null check (service in ('tts', 'stt', 'llm', 'memory', 'call', 'number')),
  operation text not null,
  resource_id text,
  quantity numeric not null check (quantity >= 0),
  unit text not null,
  unit_price_nano bigint not null check (unit_price_nano >= 0),
  api_key_id integer references api_keys (id),
  user_id integer references users (id)
);
create index usage_logs_workspace on usage_logs (workspace_id, position);
create trigger usage_logs_append_only before update or delete or truncate on usage_logs
  for each statement execute function refuse_change();

insert into usage_logs
select e.id, e.workspace_id, e.position, 'call', 'click2call', c.call_id, round(c.talk_seconds / 60.0, 9), 'minute',
  c.price_per_minute_nano, c.api_key_id, c.created_by_user_id
from entries e join calls c on c.call_id = e.call_id
where e.kind = 'settle' and c.talk_seconds is not null;

-- Money that came in, is on its way, or did not arrive. Only one that succeeded has an entry.
create table payments (
  id uuid primary key,
  position bigint generated always as identity unique,
  workspace_id uuid not null references workspaces (id),
  payment_type text not null check (payment_type in ('one_time', 'subscription', 'admin_bonus')),
  status text not null check (status in ('succeeded', 'pending', 'failed')),
  -- In `currency`: a payment in another one than the wallet's is kept as failed.
  amount_nano bigint not null check (amount_nano >= 0),
  currency text not null default 'USD' check (currency ~ '^[A-Z]{3}$'),
  entry_id uuid unique references entries (id),
  balance_before_nano bigint not null,
  balance_after_nano bigint not null,
  description text not null default '',
  -- Who was paid, and its name for the payment.
  provider text,
  provider_payment_id text,
  -- When the provider says that the status became so; news that is older changes nothing.
  provider_time timestamptz,
  created_at timestamptz not null,
  unique (provider, provider_payment_id),
  check ((provider is null) = (provider_payment_id is null)),
  check ((status = 'succeeded') = (entry_id is not null))
);
create index payments_workspace on payments (workspace_id, position);

insert into payments (id, workspace_id, payment_type, status, amount_nano, entry_id, balance_before_nano,
  balance_after_nano, description, created_at)
select id, workspace_id, coalesce(payment_type, 'one_time'), 'succeeded', result_nano, id, balance_before_nano,
  balance_after_nano, description, created_at
from entries where kind = 'top_up' order by position;

-- Each message of a payment provider takes effect once.
create table payment_events (
  provider text not null,
  event_id text not null,
  type text not null,
  received_at timestamptz not null,
  primary key (provider, event_id)
);

-- What differs from the prices in storage/price-book.ts: for a plan, or for one workspace.
create table prices (
  plan text check (plan in ('free', 'starter', 'pro', 'enterprise')),
  workspace_id uuid references workspaces (id),
  item text not null check (item in ('tts', 'stt', 'llm', 'memory', 'call', 'number', 'diarization')),
  -- Nano-dollars per unit; of `diarization` per cent on top of `stt`.
  value bigint not null check (value >= 0),
  updated_at timestamptz not null,
  check ((plan is null) <> (workspace_id is null))
);
create unique index prices_plan on prices (plan, item) where plan is not null;
create unique index prices_workspace on prices (workspace_id, item) where workspace_id is not null;

-- Months of the present rental that were charged, or were free: the next is due at rented_at plus as many months.
alter table numbers add column rent_months integer not null default 0 check (rent_months >= 0);
alter table numbers add column rented_by_user_id integer references users (id);
alter table numbers add column rented_by_api_key_id integer references api_keys (id);
update numbers
set rent_months = greatest(0, (extract(year from age(now(), rented_at)) * 12 + extract(month from age(now(), rented_at)))::integer) + 1
where rented_at is not null;
