import { API_OPTIONS, openApi } from '../api-access.ts';
import { type Command, defineAction, UsageError } from '../command.ts';
import { everyPage } from '../every-page.ts';
import { listOf, numberOf } from '../option-values.ts';
import { fields } from '../terminal.ts';

interface Limits {
  daily_spend_cap_usd: number | null;
  blocked_prefixes: string[];
  destination_limits: { prefix: string; calls_per_minute: number }[];
}

interface Rules extends Limits {
  calling_hours: { time_zone: string; start: string; end: string } | null;
  operator_limits: Limits;
}

interface DoNotCallPage {
  numbers: { e164: string; created_at: string }[];
}

const show = defineAction({
  summary: 'Show the limits on calls of the workspace.',
  options: API_OPTIONS,
  async run({ host, values }) {
    const rules = await openApi(host, values).get<Rules>('/dialer/calling-rules');
    return { data: { rules }, text: describe(rules) };
  },
});

const set = defineAction({
  summary: 'Change the limits on calls of the workspace. Admins and owners only.',
  options: {
    'daily-cap': { value: 'USD|off', about: 'spend on calls per day at which further calls are rejected' },
    block: { value: 'LIST', about: 'blocked prefixes, such as +882,+979; "" blocks none' },
    limits: { value: 'LIST', about: 'calls per minute to a prefix, such as +91:15,+44:5; "" limits none' },
    hours: { value: 'HH:MM-HH:MM|off', about: 'hours at which customers may be called, such as 09:00-21:00' },
    zone: { value: 'ZONE', about: 'time zone of --hours, such as Asia/Kolkata' },
    ...API_OPTIONS,
  },
  async run({ host, values }) {
    if (values.zone !== undefined && (values.hours ?? 'off') === 'off')
      throw new UsageError('--zone takes hours beside it, such as --hours 09:00-21:00');
    const patch = {
      ...(values['daily-cap'] !== undefined && { daily_spend_cap_usd: offOr(values['daily-cap'], capOf) }),
      ...(values.block !== undefined && { blocked_prefixes: listOf(values.block) }),
      ...(values.limits !== undefined && { destination_limits: listOf(values.limits).map(limitOf) }),
      ...(values.hours !== undefined && { calling_hours: offOr(values.hours, (text) => hoursOf(text, values.zone)) }),
    };
    if (Object.keys(patch).length === 0)
      throw new UsageError('set takes at least one of --daily-cap, --block, --limits and --hours');
    const rules = await openApi(host, values).patch<Rules>('/dialer/calling-rules', patch);
    return { data: { rules }, text: describe(rules) };
  },
});

const doNotCall = defineAction({
  summary: 'List the numbers that must not be called.',
  options: API_OPTIONS,
  async run({ host, values }) {
    const pages = await everyPage<DoNotCallPage>(openApi(host, values), '/dialer/do-not-call');
    const numbers = pages.flatMap((page) => page.numbers);
    const text = numbers.map(({ e164 }) => e164).join('\n') || 'The do-not-call list is empty.';
    return { data: { numbers }, text };
  },
});

const NUMBERS = { name: 'NUMBER', about: 'one or more numbers, separated by commas' };

const block = defineAction({
  summary: 'Add numbers to the do-not-call list. Admins and owners only.',
  parameters: [NUMBERS],
  options: API_OPTIONS,
  async run({ host, values, arguments: [list = ''] }) {
    const api = openApi(host, values);
    const numbers = listOf(list);
    let added = 0;
    for (let at = 0; at < numbers.length; at += MAX_NUMBERS) {
      const body = { numbers: numbers.slice(at, at + MAX_NUMBERS) };
      added += (await api.post<{ added: number }>('/dialer/do-not-call', body)).added;
    }
    return { data: { added }, text: `${added} numbers were added.` };
  },
});

const allow = defineAction({
  summary: 'Remove a number from the do-not-call list. Admins and owners only.',
  parameters: [{ name: 'NUMBER', about: 'the number, in +E.164' }],
  options: API_OPTIONS,
  async run({ host, values, arguments: [e164 = ''] }) {
    const data = await openApi(host, values).delete<{ e164: string }>(
      `/dialer/do-not-call/${encodeURIComponent(e164)}`,
    );
    return { data, text: `${data.e164} may be called again.` };
  },
});

export const rulesCommand: Command = {
  actions: { show, set, 'do-not-call': doNotCall, block, allow },
};

const MAX_NUMBERS = 1000;

function describe({ calling_hours: hours, operator_limits: operator, ...own }: Rules): string {
  return fields([
    ...describeLimits(own),
    ['hours', hours === null ? 'any' : `${hours.start} to ${hours.end}, ${hours.time_zone}`],
    ...describeLimits(operator).map(([name, value]): [string, string] => [`${name} (operator)`, value]),
  ]);
}

function describeLimits({
  daily_spend_cap_usd: cap,
  blocked_prefixes,
  destination_limits,
}: Limits): [string, string][] {
  const limits = destination_limits.map(({ prefix, calls_per_minute: calls }) => `${prefix}: ${calls} a minute`);
  return [
    ['daily cap', cap === null ? 'none' : `${cap} USD`],
    ['blocked', blocked_prefixes.join(', ') || 'none'],
    ['limits', limits.join(', ') || 'none'],
  ];
}

function offOr<Value>(text: string, read: (text: string) => Value): Value | null {
  return text === 'off' ? null : read(text);
}

function capOf(text: string): number {
  return numberOf('--daily-cap', text)!;
}

function limitOf(text: string): { prefix: string; calls_per_minute: number } {
  const [, prefix, calls] = /^(\+\d{1,15}):(\d{1,5})$/.exec(text) ?? [];
  if (prefix === undefined) throw new UsageError('--limits takes prefixes and calls per minute, such as +91:15,+44:5');
  return { prefix, calls_per_minute: Number(calls) };
}

function hoursOf(text: string, zone: string | undefined): { time_zone: string; start: string; end: string } {
  const [, start, end] = /^(\d\d:\d\d)-(\d\d:\d\d)$/.exec(text) ?? [];
  if (start === undefined || end === undefined) throw new UsageError('--hours takes hours such as 09:00-21:00, or off');
  if (zone === undefined) throw new UsageError('--hours takes a time zone beside it, such as --zone Asia/Kolkata');
  return { time_zone: zone, start, end };
}
