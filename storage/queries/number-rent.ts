import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { type Charge, charge } from '../ledger.ts';
import { costAt, type PriceBook, priceBookOf } from '../price-book.ts';
import { notLater } from './due-times.ts';

export interface RentedNumber {
  e164: string;
  workspaceId: string | null;
  /** The number's own price; zero means the price book's. */
  monthlyPriceNano: bigint;
  rentedAt: Date | null;
  rentMonths: number;
  rentedByUserId: number | null;
  rentedByApiKeyId: number | null;
}

export function monthlyPrice({ monthlyPriceNano }: Pick<RentedNumber, 'monthlyPriceNano'>, prices: PriceBook): bigint {
  return monthlyPriceNano > 0n ? monthlyPriceNano : prices.number;
}

/**
 * Charges and counts the next month of a rental; a free month is only counted. The caller has locked the number.
 * @throws TandemError `INSUFFICIENT_CREDITS`
 */
export async function chargeMonth(tx: Tx, number: RentedNumber, now: Date): Promise<Charge | null> {
  const { e164, rentedAt, rentMonths } = number;
  const workspaceId = number.workspaceId!;
  const unitPriceNano = monthlyPrice(number, await priceBookOf(tx, workspaceId));
  await tx`update numbers set rent_months = rent_months + 1 where e164 = ${e164} and status = 'assigned'`;
  if (unitPriceNano === 0n) return null;
  return await charge(tx, {
    ...costAt({ service: 'number', count: 1, unitPriceNano }),
    workspaceId,
    operation: 'rent',
    resourceId: e164,
    apiKeyId: number.rentedByApiKeyId,
    userId: number.rentedByUserId,
    operationKey: `number:${workspaceId}:${e164}:${rentedAt!.toISOString()}:${rentMonths}`,
    description: `Rent of a number, month ${rentMonths + 1}`,
    at: now,
  });
}

/** Returns numbers with an unpaid month that has begun, oldest rental first. */
export async function numbersWithRentDue(sql: SqlOrTx, now: Date): Promise<string[]> {
  const rows = await sql<{ e164: string }[]>`
    select e164 from numbers where ${isDue(sql, now)} order by rented_at, e164`;
  return rows.map(({ e164 }) => e164);
}

/**
 * Collects one month if due. Only one node succeeds.
 * @throws TandemError `INSUFFICIENT_CREDITS`; the month stays due
 */
export async function collectRent(sql: SqlOrTx, { e164, now }: { e164: string; now: Date }): Promise<boolean> {
  return await inTransaction(sql, async (tx) => {
    const [number] = await tx<RentedNumber[]>`
      select * from numbers where e164 = ${e164} and ${isDue(tx, now)} for update`;
    if (!number) return false;
    await chargeMonth(tx, number, now);
    return true;
  });
}

/** Calendar months in UTC; a rental from the 31st continues on the last day of shorter months. */
function isDue(sql: SqlOrTx, now: Date) {
  return sql`status = 'assigned' and rented_at + make_interval(months => rent_months) <= ${notLater(sql, now)}`;
}
