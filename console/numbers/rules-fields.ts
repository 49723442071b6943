import type { operations } from '@tandem/client';
import { listOf } from './list-of.ts';

export type Rules = operations['getCallingRules']['responses'][200]['content']['application/json']['data'];

export interface LimitRow {
  key: number;
  prefix: string;
  perMinute: number | string;
}

export interface Fields {
  cap: number | string;
  blocked: string[];
  limits: LimitRow[];
  hours: Rules['calling_hours'];
}

export function fieldsOf(rules: Rules): Fields {
  return {
    cap: rules.daily_spend_cap_usd ?? '',
    blocked: rules.blocked_prefixes,
    limits: rules.destination_limits.map(({ prefix, calls_per_minute: perMinute }, key) => ({
      key,
      prefix,
      perMinute,
    })),
    hours: rules.calling_hours,
  };
}

/** The request that saves these fields. A blocked prefix can be a pasted list, or end with a space. */
export function bodyOf({ cap, blocked, limits, hours }: Partial<Fields>) {
  return {
    ...(cap !== undefined && { daily_spend_cap_usd: cap === '' ? null : Number(cap) }),
    ...(blocked && { blocked_prefixes: [...new Set(listOf(blocked.join()))] }),
    ...(limits && {
      destination_limits: limits.map(({ prefix, perMinute }) => ({
        prefix: prefix.trim(),
        calls_per_minute: Number(perMinute),
      })),
    }),
    ...(hours !== undefined && { calling_hours: hours }),
  };
}
