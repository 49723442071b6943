import { nanoToUsd } from '../../../runtime/money.ts';
import { inTransaction, type Sql } from '../../../storage/database.ts';
import { listPrices, PRICED_ITEMS, type PricedItem, setPrice } from '../../../storage/price-book.ts';
import { PLANS, type Plan } from '../../../storage/queries/workspaces.ts';
import { type Command, defineAction, UsageError } from '../command.ts';
import { formatUsd, parseUsd } from '../money.ts';
import { auditOperator, WORKSPACE_OPTION, withDatabase, workspaceOf } from '../operator-database.ts';
import { table } from '../terminal.ts';

const list = defineAction({
  summary: 'List the prices of a workspace and where each comes from.',
  options: WORKSPACE_OPTION,
  run: async ({ host, values }) =>
    await withDatabase(host, async (sql) => {
      const workspace = await workspaceOf(sql, values.workspace);
      const prices = await listPrices(sql, workspace.id);
      const text = table(
        ['ITEM', 'PRICE', 'SET FOR'],
        prices.map(({ item, value, unit, setFor }) => [item, formatPrice(item, value, unit), setFor]),
        '',
      );
      const data = {
        workspace_id: workspace.id,
        prices: prices.map(({ item, value, unit, setFor }) => ({ ...present(item, value), unit, set_for: setFor })),
      };
      return { data, text };
    }),
});

const set = defineAction({
  summary: 'Change a price for one workspace or a plan. Past charges do not change.',
  parameters: [
    { name: 'ITEM', about: PRICED_ITEMS.join(', ') },
    { name: 'PRICE', about: 'USD per unit such as 0.006; per cent on top of stt for diarization; or default' },
  ],
  options: {
    ...WORKSPACE_OPTION,
    plan: { value: 'PLAN', about: `instead of one workspace: ${PLANS.join(', ')}` },
  },
  async run({ host, values, arguments: [itemText = '', priceText = ''] }) {
    const item = PRICED_ITEMS.find((known) => known === itemText);
    if (item === undefined) throw new UsageError(`ITEM takes one of ${PRICED_ITEMS.join(', ')}`);
    const plan = PLANS.find((known) => known === values.plan);
    if (values.plan !== undefined && plan === undefined)
      throw new UsageError(`--plan takes one of ${PLANS.join(', ')}`);
    if (plan !== undefined && values.workspace !== undefined) {
      throw new UsageError('--plan and --workspace cannot be set together');
    }
    const value = parsePrice(item, priceText);
    return await withDatabase(host, async (sql) => {
      const { scope, whose } = await scopeOf(sql, { plan, workspace: values.workspace });
      await change(sql, { scope, item, value });
      const price = value === null ? 'what it is elsewhere' : formatPrice(item, value, null);
      const data = { ...(value === null ? { item, price: null } : present(item, value)), ...whose.data };
      return { data, text: `${item} now costs ${whose.text} ${price}.` };
    });
  },
});

export const pricesCommand: Command = {
  actions: { list, set },
  notes: 'A workspace price overrides its plan price; both override the default.',
};

/** Null means the default of the wider scope. @throws UsageError */
function parsePrice(item: PricedItem, text: string): bigint | null {
  if (text === 'default') return null;
  if (item === 'diarization') {
    if (!/^\d{1,4}$/.test(text))
      throw new UsageError('the PRICE of diarization is a whole number of per cent, or default');
    return BigInt(text);
  }
  const isFree = /^0(\.0{1,9})?$/.test(text);
  const nano = isFree ? 0n : parseUsd(text);
  if (nano === null) throw new UsageError('PRICE takes USD such as 0.006, 0 for free, or default');
  return nano;
}

async function scopeOf(sql: Sql, { plan, workspace }: { plan: Plan | undefined; workspace: string | undefined }) {
  if (plan !== undefined)
    return { scope: { plan }, whose: { data: { plan }, text: `all workspaces on the ${plan} plan` } };
  const { id, name } = await workspaceOf(sql, workspace);
  return { scope: { workspaceId: id }, whose: { data: { workspace_id: id }, text: name } };
}

/** Owners of all affected workspaces see the change in their audit logs. */
async function change(
  sql: Sql,
  { scope, item, value }: { scope: { plan: Plan } | { workspaceId: string }; item: PricedItem; value: bigint | null },
): Promise<void> {
  const now = new Date();
  await inTransaction(sql, async (tx) => {
    await setPrice(tx, { scope, item, value, now });
    const concerned =
      'plan' in scope ? await tx<{ id: string }[]>`select id from workspaces where plan = ${scope.plan}` : [];
    const ids = 'plan' in scope ? concerned.map(({ id }) => id) : [scope.workspaceId];
    const details = value === null ? { price: 'default' } : present(item, value);
    for (const workspaceId of ids) {
      await auditOperator(tx, {
        workspaceId,
        action: 'price.changed',
        target: { type: 'price', id: item },
        details,
        now,
      });
    }
  });
}

function formatPrice(item: PricedItem, value: bigint, unit: string | null): string {
  if (item === 'diarization') return `${value} % on top of stt`;
  return unit === null ? formatUsd(value) : `${formatUsd(value)} per ${unit}`;
}

function present(item: PricedItem, value: bigint) {
  return item === 'diarization' ? { item, percent: Number(value) } : { item, price_usd: nanoToUsd(value) };
}
