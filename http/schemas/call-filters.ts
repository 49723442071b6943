import { type Static, Type } from 'typebox';
import type { CallFilters, CallPosition } from '../../storage/queries/call-search.ts';
import type { CallState } from '../../storage/queries/calls.ts';
import { isUuid } from '../../storage/queries/identifiers.ts';
import { validationFailed } from '../validation.ts';
import { CALL_STATES } from './call.ts';
import { type NumberPlan, readCallable } from './phone-number.ts';
import { REFERENCE } from './placement.ts';
import { readTime } from './time.ts';

const MAX_ID = 2_147_483_647;
const STATE = CALL_STATES.join('|');

export const CALL_FILTERS = {
  state: Type.Optional(
    Type.String({
      pattern: `^(?:${STATE})(?:,(?:${STATE}))*$`,
      maxLength: 200,
      description: `States of the calls, separated by commas: ${CALL_STATES.join(', ')}.`,
      examples: ['completed,failed'],
    }),
  ),
  from: Type.Optional(Type.String({ description: 'Only calls created at or after this time. ISO 8601.' })),
  to: Type.Optional(Type.String({ description: 'Only calls created before this time. ISO 8601.' })),
  hangup_cause: Type.Optional(
    Type.String({
      pattern: '^[A-Z0-9_]{1,64}$',
      description: 'Hangup cause of the calls, such as `USER_BUSY`.',
      examples: ['USER_BUSY'],
    }),
  ),
  direction: Type.Optional(Type.Enum(['outbound', 'inbound'], { description: 'Only calls in this direction.' })),
  agent_number: Type.Optional(
    Type.String({ description: 'Only calls to this agent, in any format that placing a call accepts.' }),
  ),
  customer_number: Type.Optional(
    Type.String({ description: 'Only calls to this customer, in any format that placing a call accepts.' }),
  ),
  number: Type.Optional(
    Type.String({
      maxLength: 32,
      description: 'Only calls whose agent or customer has this number: in E.164 format, or its last 4 digits or more.',
      examples: ['+919876543210', '3210'],
    }),
  ),
  user_id: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_ID,
      description: 'Only calls that this user placed, or whose agent is the browser of this user.',
    }),
  ),
  api_key_id: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_ID, description: 'Only calls that were placed with this API key.' }),
  ),
  trunk_id: Type.Optional(Type.String({ format: 'uuid', description: 'Only calls over this trunk.' })),
  reference_id: Type.Optional(Type.String({ description: 'Only calls with this reference_id.' })),
  metadata: Type.Optional(
    Type.String({
      minLength: 2,
      maxLength: 200,
      description: 'Only calls whose metadata contains this text, in a name or a value, whatever the case.',
      examples: ['north'],
    }),
  ),
  min_talk_seconds: Type.Optional(
    Type.Integer({ minimum: 0, maximum: MAX_ID, description: 'Only calls that talked at least this long.' }),
  ),
  max_talk_seconds: Type.Optional(
    Type.Integer({ minimum: 0, maximum: MAX_ID, description: 'Only calls that talked at most this long.' }),
  ),
  has_recording: Type.Optional(
    Type.Boolean({ description: 'Only calls whose recording can be played; or, if false, cannot.' }),
  ),
};

const CallFiltersSchema = Type.Object(CALL_FILTERS);

/** @throws TandemError VALIDATION_FAILED */
export function callFilters(
  workspaceId: string,
  { query, numberPlan }: { query: Static<typeof CallFiltersSchema>; numberPlan: NumberPlan },
): CallFilters {
  const { reference_id: referenceId, trunk_id: trunkId, metadata, state } = query;
  if (referenceId !== undefined && !REFERENCE.test(referenceId)) {
    throw validationFailed([{ path: 'reference_id', message: 'must be 1 to 128 characters of A-Z a-z 0-9 . _ : -' }]);
  }
  if (trunkId !== undefined && !isUuid(trunkId))
    throw validationFailed([{ path: 'trunk_id', message: 'must be a UUID' }]);
  return defined({
    workspaceId,
    states: state?.split(',') as CallState[] | undefined,
    hangupCause: query.hangup_cause,
    direction: query.direction,
    from: readTime('from', query.from),
    to: readTime('to', query.to),
    agentNumber: readCallable('agent_number', query.agent_number, numberPlan),
    customerNumber: readCallable('customer_number', query.customer_number, numberPlan),
    number: readDigits(query.number),
    userId: query.user_id,
    apiKeyId: query.api_key_id,
    trunkId,
    referenceId,
    metadataText: metadata === undefined ? undefined : asJsonText(metadata),
    minTalkSeconds: query.min_talk_seconds,
    maxTalkSeconds: query.max_talk_seconds,
    hasRecording: query.has_recording,
  });
}

function defined<T extends object>(filters: T): CallFilters {
  return Object.fromEntries(
    Object.entries(filters).filter(([, value]) => value !== undefined),
  ) as unknown as CallFilters;
}

/** Accepts a leading space, which is a plus sign in an unencoded query. */
function readDigits(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const digits = text.replace(/^ (?=\d)/, '+').replace(/[\s().-]/g, '');
  if (/^\+\d{4,15}$/.test(digits) || /^\d{4,15}$/.test(digits)) return digits;
  throw validationFailed([{ path: 'number', message: 'must be a number in E.164 format, or its last 4 to 15 digits' }]);
}

/** Escapes text as in a JSON string. Replaces lone surrogates, which Postgres rejects. */
function asJsonText(text: string): string {
  return JSON.stringify(text.toWellFormed()).slice(1, -1);
}

const FIRST = 'start';

export const CURSOR_QUERY = {
  cursor: Type.Optional(
    Type.String({
      maxLength: 300,
      description:
        'Reads the list by cursor instead of by page: `start`, then `next_cursor` of each response, with the same filters. It is fast however long the list is, skips and repeats nothing when calls are added, and reports no total.',
      examples: [FIRST],
    }),
  ),
};

export function readCursor(text: string): CallPosition | null {
  if (text === FIRST) return null;
  const [, createdAtUs, callId] =
    /^(\d{1,18})\/([\w.:-]{1,128})$/.exec(Buffer.from(text, 'base64url').toString('latin1')) ?? [];
  if (createdAtUs === undefined || callId === undefined) {
    throw validationFailed([{ path: 'cursor', message: 'must be `start` or the next_cursor of a response' }]);
  }
  return { createdAtUs: BigInt(createdAtUs), callId };
}

export function cursorOf(position: CallPosition | null): string | null {
  return position && Buffer.from(`${position.createdAtUs}/${position.callId}`, 'latin1').toString('base64url');
}
