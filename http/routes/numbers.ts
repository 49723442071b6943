import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { nanoToUsd } from '../../runtime/money.ts';
import { inTransaction } from '../../storage/database.ts';
import {
  availableNumbers,
  listNumbers,
  type NumberRow,
  releaseNumber,
  rentNumber,
  setInboundRule,
} from '../../storage/queries/numbers.ts';
import { callbackSecretContext } from '../../storage/secret-contexts.ts';
import { principalOf } from '../auth.ts';
import { billingHeaders } from '../billing-headers.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { requireTrunk } from '../playback.ts';
import { recordAction } from '../recorded-action.ts';
import {
  nullable,
  PAGE_QUERY,
  pageOf,
  paginationOf,
  REFUSALS,
  success,
  successOf,
  TimeSchema,
} from '../schemas/envelope.ts';
import { InboundRuleBody, InboundRuleSchema, presentInboundRule, readInboundRule } from '../schemas/inbound-rule.ts';
import { E164Schema, normaliseE164, requireE164 } from '../schemas/phone-number.ts';

const TAGS = ['numbers'];
const NumberParams = Type.Object({
  e164: Type.String({ description: 'Number in E.164 format, with the plus sign encoded as %2B.' }),
});

export function numberRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, now } = context;

  app.get(
    '/dialer/numbers',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listNumbers',
        summary: 'List rented numbers',
        description: 'Returns the numbers that the workspace rents.',
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(pageOf('numbers', NumberSchema), 'One page of numbers.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const { rows, total } = await listNumbers(sql, { workspaceId }, request.query);
      return success({ numbers: rows.map(presentNumber), pagination: paginationOf(request.query, total) });
    },
  );

  app.get(
    '/dialer/numbers/available',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listAvailableNumbers',
        summary: 'List available numbers',
        description: 'Returns numbers you can rent, in ascending order.',
        querystring: Type.Object({
          pattern: Type.Optional(
            Type.String({
              pattern: '^[+ ]?[0-9*]{1,15}$',
              description: 'Digits that the number must contain, for example `+9122`. `*` matches any digits.',
            }),
          ),
          limit: PAGE_QUERY.limit,
        }),
        response: {
          200: successOf(Type.Object({ numbers: Type.Array(NumberSchema) }), 'Available numbers.'),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const { pattern, limit } = request.query;
      // An unencoded plus arrives as a space.
      const rows = await availableNumbers(sql, { workspaceId, pattern: pattern?.replace(' ', '+'), limit });
      return success({ numbers: rows.map(presentNumber) });
    },
  );

  app.post(
    '/dialer/numbers',
    {
      config: { access: 'writer', billed: true },
      schema: {
        tags: TAGS,
        operationId: 'rentNumber',
        summary: 'Rent a number',
        description:
          'Rents a number until you release it. The first month is charged now, and each following month when it begins.',
        body: Type.Object({ e164: E164Schema }, { additionalProperties: false }),
        response: {
          201: successOf(NumberSchema, 'The number was rented.'),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const e164 = requireE164('e164', request.body.e164);
      await requireTrunk(context, principal);
      const { workspaceId, apiKeyId, userId } = principal;
      const at = now();
      const rented = await inTransaction(sql, async (tx) => {
        const number = await rentNumber(tx, { workspaceId, e164, apiKeyId, userId, now: at });
        await recordAction(tx, request, { action: 'number.rented', target: { type: 'number', id: e164 }, now: at });
        return number;
      });
      if (rented.charge !== null) reply.headers(billingHeaders(rented.charge, principalOf(request)));
      return reply.code(201).send(success(presentNumber(rented)));
    },
  );

  app.put(
    '/dialer/numbers/:e164/inbound',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'setInboundRule',
        summary: 'Set the rule for calls to a number',
        description:
          'Sets what becomes of calls to a rented number. With `forward`, the caller hears ringing while the endpoint is dialed over the trunk of the number, and is connected when it answers. With `ask`, Tandem sends a signed POST to `url` while the caller hears ringing, and does what its answer says; without a valid answer within three seconds, what `fallback` says. The call is a call object with `direction` `inbound`, with the same events, limits and charges. Calls are taken from the addresses of the trunk only. Tandem extension.',
        params: NumberParams,
        body: InboundRuleBody,
        response: { 200: successOf(NumberSchema, 'The number, with its new rule.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId, userId } = principalOf(request);
      const e164 = readNumber(request.params.e164);
      const rule = await readInboundRule(
        request.body,
        { ownUserId: userId, numberPlan: context.numberPlan },
        {
          seal: (secret) => context.secrets.seal(secret, callbackSecretContext(workspaceId)).toString('base64'),
          checkUrl: (url, field) => context.dialer.checkCallbackUrl(url, field),
          checkSpeech: ({ announce, voiceId }) =>
            context.dialer.checkSpeech({ workspaceId, announce, whisper: null, voiceId }),
        },
      );
      const number = await inTransaction(sql, async (tx) => {
        const target = { type: 'number', id: e164 } as const;
        const changed = await setInboundRule(tx, { workspaceId, e164, rule });
        const details = { action: rule.action };
        await recordAction(tx, request, { action: 'number.inbound_changed', target, details, now: now() });
        return changed;
      });
      return success(presentNumber(number));
    },
  );

  app.delete(
    '/dialer/numbers/:e164',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'releaseNumber',
        summary: 'Release a number',
        description:
          'Releases a rented number and stops its monthly charge. The current month is not refunded. A number that a live call uses cannot be released.',
        params: NumberParams,
        response: {
          200: successOf(
            Type.Object({ e164: E164Schema, status: Type.Literal('released'), released_at: TimeSchema }),
            'The number was released.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      await requireTrunk(context, principal);
      const e164 = readNumber(request.params.e164);
      const at = now();
      const released = await inTransaction(sql, async (tx) => {
        const number = await releaseNumber(tx, { workspaceId: principal.workspaceId, e164, now: at });
        await recordAction(tx, request, { action: 'number.released', target: { type: 'number', id: e164 }, now: at });
        return number;
      });
      return success({ e164, status: 'released', released_at: released.releasedAt?.toISOString() });
    },
  );
}

/** @throws TandemError NUMBER_NOT_FOUND */
function readNumber(e164: string): string {
  const number = normaliseE164(e164);
  if (number !== null) return number;
  throw new TandemError('NUMBER_NOT_FOUND', 'The path must be a number in E.164 format, such as %2B912240000001.');
}

const NumberSchema = Type.Object({
  e164: E164Schema,
  status: Type.Enum(['available', 'assigned', 'reserved'], { description: '`assigned`: rented by the workspace.' }),
  outbound_trunk_id: Type.String({ format: 'uuid', description: 'Trunk that the number belongs to.' }),
  monthly_price_usd: Type.Number({ description: 'Monthly charge, in USD.', examples: [2] }),
  rented_at: nullable({ ...TimeSchema, description: 'When the number was rented. Null if it is not.' }),
  inbound: InboundRuleSchema,
});

function presentNumber(row: NumberRow) {
  return {
    e164: row.e164,
    status: row.status,
    outbound_trunk_id: row.trunkId,
    monthly_price_usd: nanoToUsd(row.monthlyPriceNano),
    rented_at: row.rentedAt?.toISOString() ?? null,
    inbound: presentInboundRule(row.inbound),
  };
}
