-- Refunds and disputes: money of a payment that its provider took back, and gave again.

alter table entries drop constraint entries_kind_check;
alter table entries add constraint entries_kind_check
  check (kind in ('top_up', 'reversal', 'hold', 'hold_grow', 'settle', 'void', 'charge', 'refund'));

-- Only a reversal may leave a wallet below zero: what it takes back may have been spent.
alter table accounts drop constraint accounts_never_overdrawn;
alter table accounts add constraint accounts_never_overdrawn check (kind <> 'held' or balance_nano >= 0);
create or replace function apply_posting() returns trigger language plpgsql as $$
declare
  account record;
begin
  update accounts set balance_nano = balance_nano + new.amount_nano where id = new.account_id
  returning kind, balance_nano into account;
  if account.kind = 'wallet' and account.balance_nano < 0 and new.amount_nano < 0
    and not exists (select from entries where id = new.entry_id and kind = 'reversal') then
    raise exception 'ledger entry % breaks accounts_never_overdrawn', new.entry_id
      using errcode = 'check_violation', constraint = 'accounts_never_overdrawn';
  end if;
  return null;
end $$;

-- A payment that reverses another has the amount below zero; one that gives the money again, above.
alter table payments add column reverses_payment_id uuid references payments (id);
create index payments_reverses_payment on payments (reverses_payment_id) where reverses_payment_id is not null;
alter table payments drop constraint payments_amount_nano_check;
alter table payments add constraint payments_amount_nano_check check (amount_nano >= 0 or reverses_payment_id is not null);

-- What the provider said about refunds and disputes, also of payments that it has not named yet.
create table payment_reversals (
  provider text not null,
  -- The provider's id: of a refund, of a dispute, or of the charge whose refunds are added up in `refunded_in_all`.
  id text not null,
  kind text not null check (kind in ('refund', 'refunded_in_all', 'dispute')),
  -- The payment: `provider_payment_id` of a row of payments, or a name for one in payment_names.
  payment_name text not null,
  amount_nano bigint not null check (amount_nano >= 0),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  -- The refund failed, or the dispute was won.
  is_undone boolean not null,
  provider_time timestamptz not null,
  primary key (provider, id)
);
create index payment_reversals_payment on payment_reversals (provider, payment_name);

-- Other names of a payment: an invoice is paid by payment intents, and refunds name those alone.
create table payment_names (
  provider text not null,
  name text not null,
  provider_payment_id text not null,
  primary key (provider, name)
);
create index payment_names_payment on payment_names (provider, provider_payment_id);
