import { Type } from 'typebox';
import { nanoToUsd } from '../../runtime/money.ts';
import { type ListedPrice, listPrices, PRICED_ITEMS } from '../../storage/price-book.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';

export function priceRoutes(app: HttpApp, { sql }: HttpContext): void {
  app.get(
    '/billing/prices',
    {
      config: { access: 'member' },
      schema: {
        tags: ['billing'],
        operationId: 'listPrices',
        summary: 'List prices',
        description:
          'Returns what the workspace pays for each service. Trunks and numbers can have prices of their own. Tandem extension.',
        response: { 200: successOf(PricesSchema, 'The prices.'), ...REFUSALS },
      },
    },
    async (request) => {
      const prices = await listPrices(sql, principalOf(request).workspaceId);
      return success({ prices: prices.map(presentPrice) });
    },
  );
}

const PricesSchema = Type.Object(
  {
    prices: Type.Array(
      Type.Object({
        item: Type.Enum([...PRICED_ITEMS], {
          description:
            'Service. `diarization` is a surcharge on `stt`; `call` and `number` apply where the trunk or the number has no price.',
        }),
        price_usd: Type.Optional(Type.Number({ description: 'Price per unit, in USD. Missing for `diarization`.' })),
        percent: Type.Optional(Type.Integer({ description: 'Surcharge in per cent. Only for `diarization`.' })),
        unit: Type.String({
          description: 'Billing unit. For `diarization`: the service that it is added to.',
          examples: ['minute', 'character', 'token', 'month', '1000 characters'],
        }),
        set_for: Type.Enum(['workspace', 'plan', 'default'], { description: 'Where the price comes from.' }),
      }),
    ),
  },
  {
    examples: [
      {
        prices: [
          { item: 'stt', price_usd: 0.006, unit: 'minute', set_for: 'default' },
          { item: 'diarization', percent: 30, unit: 'stt', set_for: 'default' },
        ],
      },
    ],
  },
);

function presentPrice({ item, value, unit, setFor }: ListedPrice) {
  const price = item === 'diarization' ? { percent: Number(value) } : { price_usd: nanoToUsd(value) };
  return { item, ...price, unit, set_for: setFor };
}
