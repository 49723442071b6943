import { type Static, Type } from 'typebox';
import { nanoToUsd, usdToNano } from '../../runtime/money.ts';
import { timeOfDay } from '../../runtime/zoned-time.ts';
import type { CallingLimits, CallingRules } from '../../storage/queries/calling-rules.ts';
import { validationFailed } from '../validation.ts';
import { nullable } from './envelope.ts';

const PrefixSchema = Type.String({
  pattern: '^\\+[1-9][0-9]{0,14}$',
  description: 'Prefix in E.164 format, such as +91.',
});
const CapSchema = Type.Number({
  minimum: 0,
  maximum: 1_000_000,
  description: 'Spend on calls per day at which further calls are rejected, in USD with at most nine decimals.',
});
const BlockedSchema = Type.Array(PrefixSchema, {
  maxItems: 200,
  description: 'Prefixes of numbers that must not be called.',
});
const LimitSchema = Type.Object(
  {
    prefix: PrefixSchema,
    calls_per_minute: Type.Integer({ minimum: 1, maximum: 10_000, description: 'Calls in any 60 seconds.' }),
  },
  { additionalProperties: false },
);
const LimitsSchema = Type.Array(LimitSchema, {
  maxItems: 50,
  description: 'Rate limits by prefix. A number is subject to every limit whose prefix it has.',
});
const TIME = '^([01][0-9]|2[0-3]):[0-5][0-9]$';
const HoursSchema = Type.Object(
  {
    time_zone: Type.String({ maxLength: 64, description: 'IANA time zone.', examples: ['Asia/Kolkata'] }),
    start: Type.String({ pattern: TIME, description: 'First minute in which calls are allowed, as HH:MM.' }),
    end: Type.String({
      pattern: TIME,
      description: 'First minute in which calls are not allowed any more, as HH:MM. Before `start`: on the next day.',
    }),
  },
  { additionalProperties: false },
);

const EXAMPLE = {
  daily_spend_cap_usd: 50,
  blocked_prefixes: ['+882', '+979'],
  destination_limits: [{ prefix: '+91', calls_per_minute: 15 }],
  calling_hours: { time_zone: 'Asia/Kolkata', start: '09:00', end: '21:00' },
};

const OperatorLimitsSchema = Type.Object(
  {
    daily_spend_cap_usd: nullable(CapSchema),
    blocked_prefixes: BlockedSchema,
    destination_limits: LimitsSchema,
  },
  { description: 'Limits of the operator, which apply as well.' },
);

export const CallingRulesSchema = Type.Object(
  {
    daily_spend_cap_usd: nullable(CapSchema),
    blocked_prefixes: BlockedSchema,
    destination_limits: LimitsSchema,
    calling_hours: nullable({
      ...HoursSchema,
      description: 'Hours at which customers may be called. Null: at any time.',
    }),
    operator_limits: OperatorLimitsSchema,
  },
  {
    examples: [
      {
        ...EXAMPLE,
        operator_limits: { daily_spend_cap_usd: 500, blocked_prefixes: ['+881'], destination_limits: [] },
      },
    ],
  },
);

export const CallingRulesPatch = Type.Object(
  {
    daily_spend_cap_usd: Type.Optional(Type.Union([CapSchema, Type.Null()])),
    blocked_prefixes: Type.Optional(BlockedSchema),
    destination_limits: Type.Optional(LimitsSchema),
    calling_hours: Type.Optional(Type.Union([HoursSchema, Type.Null()])),
  },
  { additionalProperties: false, minProperties: 1, examples: [EXAMPLE] },
);

/** @throws TandemError VALIDATION_FAILED */
export function readCallingRules(body: Static<typeof CallingRulesPatch>): Partial<CallingRules> {
  const {
    daily_spend_cap_usd: cap,
    blocked_prefixes: blocked,
    destination_limits: limits,
    calling_hours: hours,
  } = body;
  return {
    ...(cap !== undefined && { dailySpendCapNano: cap === null ? null : requireNano(cap) }),
    ...(blocked !== undefined && { blockedPrefixes: blocked }),
    ...(limits !== undefined && {
      destinationLimits: limits.map(({ prefix, calls_per_minute: callsPerMinute }) => ({ prefix, callsPerMinute })),
    }),
    ...(hours !== undefined && { callingHours: hours === null ? null : requireHours(hours) }),
  };
}

export function presentCallingRules(rules: CallingRules, operator: CallingLimits) {
  const { callingHours: hours } = rules;
  return {
    ...presentLimits(rules),
    calling_hours: hours === null ? null : { time_zone: hours.timeZone, start: hours.start, end: hours.end },
    operator_limits: presentLimits(operator),
  };
}

function presentLimits({ dailySpendCapNano, blockedPrefixes, destinationLimits }: CallingLimits) {
  return {
    daily_spend_cap_usd: dailySpendCapNano === null ? null : nanoToUsd(dailySpendCapNano),
    blocked_prefixes: [...blockedPrefixes],
    destination_limits: destinationLimits.map(({ prefix, callsPerMinute }) => ({
      prefix,
      calls_per_minute: callsPerMinute,
    })),
  };
}

function requireNano(usd: number): bigint {
  const nano = usdToNano(usd);
  if (nano !== null) return nano;
  throw validationFailed([{ path: 'daily_spend_cap_usd', message: 'must have at most nine decimals' }]);
}

function requireHours({ time_zone: timeZone, start, end }: Static<typeof HoursSchema>) {
  if (!isTimeZone(timeZone)) {
    throw validationFailed([
      { path: 'calling_hours.time_zone', message: 'must be an IANA time zone, such as Asia/Kolkata' },
    ]);
  }
  if (start === end) throw validationFailed([{ path: 'calling_hours.end', message: 'must differ from start' }]);
  return { timeZone, start, end };
}

/** Rejects offsets such as +05:30, which ignore daylight saving time. */
function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    timeOfDay(new Date(0), name);
    return true;
  } catch {
    return false;
  }
}
