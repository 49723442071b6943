import type { SqlOrTx } from './database.ts';
import type { Plan } from './queries/workspaces.ts';

/** Priced services; also `service` in the usage log. */
export type Service = 'tts' | 'stt' | 'llm' | 'memory' | 'call' | 'number';

/** Priced items. `diarization` is a surcharge on `stt`, in per cent. */
export type PricedItem = Service | 'diarization';

/** Nano-dollars per unit of each service (`MEASURES`), and per cent. */
export type PriceBook = Readonly<Record<PricedItem, bigint>>;

/**
 * Prices unless the workspace or its plan sets others. Memory, tokens and the surcharge are from the specification
 * (Limits), which does not give the others. Only the operator knows the carrier's prices, so calls and numbers are free
 * until a trunk, number, plan or workspace has a price.
 */
export const DEFAULT_PRICES: PriceBook = {
  // 0.0001 USD per 1000 characters.
  memory: 100_000n,
  // 0.00002 USD per token.
  llm: 20_000n,
  diarization: 30n,
  // 15 USD per million characters.
  tts: 15_000n,
  // 0.006 USD per minute.
  stt: 6_000_000n,
  call: 0n,
  number: 0n,
};

/** Unit of each service's price, and how many counted things make one unit. */
const MEASURES: Readonly<Record<Service, { unit: string; countPerUnit: number }>> = {
  tts: { unit: 'character', countPerUnit: 1 },
  // Milliseconds.
  stt: { unit: 'minute', countPerUnit: 60_000 },
  llm: { unit: 'token', countPerUnit: 1 },
  // Characters.
  memory: { unit: '1000 characters', countPerUnit: 1_000 },
  // Seconds.
  call: { unit: 'minute', countPerUnit: 60 },
  number: { unit: 'month', countPerUnit: 1 },
};

/** Prices of one workspace: its own, else its plan's, else the defaults. */
export async function priceBookOf(sql: SqlOrTx, workspaceId: string): Promise<PriceBook> {
  const rows = await changedPrices(sql, workspaceId);
  return { ...DEFAULT_PRICES, ...Object.fromEntries(rows.map(({ item, value }) => [item, value])) };
}

export interface ListedPrice {
  item: PricedItem;
  /** Nano-dollars per unit; for `diarization` per cent. */
  value: bigint;
  /** Unit, such as `minute`. */
  unit: string;
  setFor: 'workspace' | 'plan' | 'default';
}

/** As `priceBookOf`, in the order of `DEFAULT_PRICES`. */
export async function listPrices(sql: SqlOrTx, workspaceId: string): Promise<ListedPrice[]> {
  const rows = await changedPrices(sql, workspaceId);
  return PRICED_ITEMS.map((item) => {
    const changed = rows.findLast((row) => row.item === item);
    const unit = item === 'diarization' ? 'stt' : MEASURES[item].unit;
    return { item, value: changed?.value ?? DEFAULT_PRICES[item], unit, setFor: changed?.setFor ?? 'default' };
  });
}

export const PRICED_ITEMS = Object.keys(DEFAULT_PRICES) as PricedItem[];

/** Plan prices first, so that the workspace's own override them. */
async function changedPrices(sql: SqlOrTx, workspaceId: string) {
  return await sql<{ item: PricedItem; value: bigint; setFor: 'workspace' | 'plan' }[]>`
    select p.item, p.value, case when p.plan is null then 'workspace' else 'plan' end as set_for
    from workspaces w join prices p on p.workspace_id = w.id or p.plan = w.plan
    where w.id = ${workspaceId} order by p.workspace_id nulls first`;
}

export interface SetPriceInput {
  /** All workspaces of a plan, or one workspace, which takes precedence. */
  scope: { plan: Plan } | { workspaceId: string };
  item: PricedItem;
  /** Nano-dollars per unit, or per cent. Null restores the wider scope's price. */
  value: bigint | null;
  now: Date;
}

/** Sets a price. Existing charges and holds do not change. */
export async function setPrice(sql: SqlOrTx, { scope, item, value, now }: SetPriceInput): Promise<void> {
  if (value !== null && value < 0n) throw new RangeError('a price is not negative');
  const owner = 'plan' in scope ? sql`plan = ${scope.plan}` : sql`workspace_id = ${scope.workspaceId}`;
  if (value === null) {
    await sql`delete from prices where item = ${item} and ${owner}`;
    return;
  }
  const row = { ...scope, item, value, updatedAt: now };
  const key =
    'plan' in scope
      ? sql`(plan, item) where plan is not null`
      : sql`(workspace_id, item) where workspace_id is not null`;
  await sql`
    insert into prices ${sql(row)}
    on conflict ${key} do update set value = excluded.value, updated_at = excluded.updated_at`;
}

/** A price, in the terms of the usage log. */
export interface Cost {
  service: Service;
  amountNano: bigint;
  /** In units. */
  quantity: number;
  unit: string;
  unitPriceNano: bigint;
}

/**
 * Returns the price of a count of characters (`tts`, `memory`), milliseconds (`stt`), tokens (`llm`), seconds (`call`)
 * or months (`number`), rounded up to whole nano-dollars.
 */
export function costOf(
  prices: PriceBook,
  { service, count, diarized = false }: { service: Service; count: number; diarized?: boolean },
): Cost {
  const base = prices[service];
  const unitPriceNano = diarized ? dividedUp(base * (100n + prices.diarization), 100n) : base;
  return costAt({ service, count, unitPriceNano });
}

/** As `costOf`, at a price from elsewhere: a trunk's, a number's, or that of a call's admission. */
export function costAt({
  service,
  count,
  unitPriceNano,
}: {
  service: Service;
  count: number;
  unitPriceNano: bigint;
}): Cost {
  const { unit, countPerUnit } = MEASURES[service];
  const amountNano = dividedUp(BigInt(Math.ceil(count)) * unitPriceNano, BigInt(countPerUnit));
  return { service, amountNano, quantity: Math.ceil(count) / countPerUnit, unit, unitPriceNano };
}

function dividedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}
