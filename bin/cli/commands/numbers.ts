import { setTimeout } from 'node:timers/promises';
import { inTransaction } from '../../../storage/database.ts';
import { listClaims, type NumberClaim, verifyNumber } from '../../../storage/queries/number-claims.ts';
import { API_OPTIONS, openApi } from '../api-access.ts';
import type { Api } from '../api-client.ts';
import { type Command, CommandError, defineAction, UsageError } from '../command.ts';
import { everyPage } from '../every-page.ts';
import { auditOperator, withDatabase } from '../operator-database.ts';
import { numberOf } from '../option-values.ts';
import { readInput } from '../standard-input.ts';
import { fields, table } from '../terminal.ts';

const claims = defineAction({
  summary: 'List the numbers that trunks claim and that are not verified, oldest first.',
  run: async ({ host }) =>
    await withDatabase(host, async (sql) => {
      const rows = await listClaims(sql);
      const text = table(
        ['NUMBER', 'TRUNK', 'TRUNK ID', 'WORKSPACE', 'SINCE'],
        rows.map((row) => [row.e164, row.trunkName, row.trunkId, row.workspaceName, row.createdAt.toISOString()]),
        'Every number that a trunk lists is verified.',
      );
      return { data: { claims: rows.map(presentClaim) }, text };
    }),
});

const verify = defineAction({
  summary: 'Verify that the owner of a trunk may present a number, so that it can be rented.',
  parameters: [{ name: 'NUMBER', about: 'the number, in +E.164' }],
  options: { trunk: { value: 'ID', about: 'the trunk; required when several trunks claim the number' } },
  run: async ({ host, values, arguments: [e164 = ''] }) =>
    await withDatabase(host, async (sql) => {
      const all = await listClaims(sql, { e164 });
      const candidates = values.trunk === undefined ? all : all.filter(({ trunkId }) => trunkId === values.trunk);
      const [claim] = candidates;
      if (claim === undefined) {
        const message = `no such trunk claims ${e164}: tandem numbers claims lists all claims.`;
        throw new CommandError('NUMBER_NOT_FOUND', message);
      }
      if (candidates.length > 1) {
        const trunks = candidates.map(({ trunkId }) => trunkId).join(', ');
        throw new CommandError('AMBIGUOUS_TRUNK', `several trunks claim ${e164}: name one with --trunk, of ${trunks}.`);
      }
      const now = new Date();
      const { trunkId, workspaceId } = claim;
      await inTransaction(sql, async (tx) => {
        await verifyNumber(tx, { e164, trunkId, by: 'operator', now });
        const target = { type: 'number', id: e164 };
        const details = { trunk_id: trunkId };
        await auditOperator(tx, { workspaceId, action: 'number.verified', target, details, now });
      });
      const text = fields([
        ['number', e164],
        ['trunk', claim.trunkName],
        ['workspace', claim.workspaceName],
        ['', 'The workspace can rent the number now.'],
      ]);
      return { data: { e164, outbound_trunk_id: trunkId, workspace_id: workspaceId, verified: true }, text };
    }),
});

interface Rule {
  action: string;
  endpoint?: { type: string; number?: string; user_id?: number };
  record?: boolean;
  transcribe?: boolean;
  announce?: string | null;
  url?: string;
  fallback?: Rule;
}

interface RentedNumber {
  e164: string;
  inbound: Rule | null;
}

const list = defineAction({
  summary: 'List the rented numbers and their rules for inbound calls.',
  options: API_OPTIONS,
  async run({ host, values }) {
    const numbers = await rentedNumbers(openApi(host, values));
    const text = table(
      ['NUMBER', 'INBOUND CALLS'],
      numbers.map(({ e164, inbound }) => [e164, ruleText(inbound)]),
      'The workspace rents no number: tandem trunks add --rent rents those of a trunk.',
    );
    return { data: { numbers }, text };
  },
});

async function rentedNumbers(api: Api): Promise<RentedNumber[]> {
  return (await everyPage<{ numbers: RentedNumber[] }>(api, '/dialer/numbers')).flatMap(({ numbers }) => numbers);
}

const inbound = defineAction({
  summary: 'Set what becomes of calls to a rented number: one of --forward, --browser, --ask and --reject.',
  parameters: [{ name: 'NUMBER', about: 'the number, in +E.164' }],
  options: {
    forward: { value: 'NUMBER', about: 'connect calls with this phone; with --ask: if the URL does not decide' },
    browser: { value: 'USER', about: 'connect calls with the browser of this user, by id' },
    ask: { value: 'URL', about: 'ask this URL about each call' },
    'secret-stdin': { about: 'with --ask: read the secret that signs the questions from standard input' },
    reject: { about: 'decline calls' },
    record: { about: 'record calls' },
    transcribe: { about: 'transcribe calls' },
    announce: { value: 'TEXT', about: 'say this to the endpoint before it is connected' },
    'ring-timeout': { value: 'SECONDS', about: 'ring the endpoint for 5 to 60 s (default 30)' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [e164 = ''] }) {
    const { ask, reject } = values;
    const isForwarded = values.forward !== undefined || values.browser !== undefined;
    if (Number(reject === true) + Number(ask !== undefined || isForwarded) !== 1) {
      throw new UsageError('numbers inbound takes one of --forward, --browser, --ask and --reject');
    }
    if (ask !== undefined && !values['secret-stdin']) throw new UsageError('--ask needs --secret-stdin');
    if (ask === undefined && values['secret-stdin']) throw new UsageError('--secret-stdin needs --ask');
    const ignored = isForwarded ? undefined : FORWARD_OPTIONS.find((name) => values[name] !== undefined);
    if (ignored !== undefined) throw new UsageError(`--${ignored} needs --forward or --browser`);
    const decision = isForwarded ? forwardOf(values) : { action: 'reject' };
    const secret = values['secret-stdin'] ? await readInput(host) : undefined;
    const rule = ask === undefined ? decision : { action: 'ask', url: ask, secret, fallback: decision };
    const path = `/dialer/numbers/${encodeURIComponent(e164)}/inbound`;
    const number = await openApi(host, values).put<RentedNumber>(path, rule);
    return { data: { number }, text: `Calls to ${number.e164}: ${ruleText(number.inbound)}.` };
  },
});

const FORWARD_OPTIONS = ['record', 'transcribe', 'announce', 'ring-timeout'] as const;

interface ForwardValues {
  forward?: string;
  browser?: string;
  record?: boolean;
  transcribe?: boolean;
  announce?: string;
  'ring-timeout'?: string;
}

function forwardOf({ forward, browser, record, transcribe, announce, ...more }: ForwardValues) {
  if (forward !== undefined && browser !== undefined)
    throw new UsageError('--forward and --browser exclude each other');
  const endpoint =
    forward === undefined
      ? { type: 'webrtc', user_id: numberOf('--browser', browser) }
      : { type: 'phone', number: forward };
  const ringTimeout = numberOf('--ring-timeout', more['ring-timeout']);
  return {
    action: 'forward',
    endpoint,
    ...(record && { record }),
    ...(transcribe && { transcribe }),
    ...(announce !== undefined && { announce }),
    ...(ringTimeout !== undefined && { ring_timeout: ringTimeout }),
  };
}

function ruleText(rule: Rule | null): string {
  if (rule === null) return 'refused, no rule';
  if (rule.action === 'reject') return 'declined';
  if (rule.action === 'ask') return `${rule.url} decides, otherwise ${ruleText(rule.fallback ?? null)}`;
  const { endpoint, record, transcribe } = rule;
  const where = endpoint?.type === 'phone' ? endpoint.number : `the browser of user ${endpoint?.user_id}`;
  return `forwarded to ${where}${record ? ', recorded' : ''}${transcribe ? ', transcribed' : ''}`;
}

interface Verification {
  id: string;
  e164: string;
  status: 'calling' | 'verified' | 'failed';
  failure: string | null;
}

const POLL_MS = 1_000;

const prove = defineAction({
  summary: 'Verify by a call that a trunk of yours receives the calls to a number. Takes up to a minute.',
  parameters: [{ name: 'NUMBER', about: 'the number, in +E.164' }],
  options: { trunk: { value: 'ID', about: 'the trunk that lists the number' }, ...API_OPTIONS },
  async run({ host, values, arguments: [e164 = ''], terminal }) {
    if (values.trunk === undefined)
      throw new UsageError('numbers prove needs --trunk ID: tandem trunks list shows them');
    const api = openApi(host, values);
    let verification = await api.post<Verification>('/dialer/numbers/verifications', { e164, trunk_id: values.trunk });
    terminal.progress(`calling ${e164}: it is verified when the call comes back over the trunk`);
    while (verification.status === 'calling') {
      await setTimeout(POLL_MS);
      verification = await api.get<Verification>(`/dialer/numbers/verifications/${verification.id}`);
    }
    terminal.progress('');
    if (verification.status === 'failed') {
      throw new CommandError(
        'NUMBER_NOT_VERIFIED',
        `${e164} was not verified: ${FAILURES[verification.failure ?? '']}.`,
      );
    }
    return { data: { verification }, text: `${e164} is verified. The workspace can rent it now.` };
  },
});

const FAILURES: Readonly<Record<string, string>> = {
  not_answered: 'the call was not answered. Point the number at this server and try again',
  busy: 'it was busy. Try again',
  refused: 'the call was refused. Point the number at this server and try again',
  code_not_heard: 'the call was answered elsewhere. Point the number at this server and try again',
  interrupted: 'the call was interrupted. Try again',
};

export const numbersCommand: Command = { actions: { list, inbound, claims, verify, prove } };

function presentClaim({ e164, trunkId, workspaceId, createdAt }: NumberClaim) {
  return { e164, outbound_trunk_id: trunkId, workspace_id: workspaceId, created_at: createdAt.toISOString() };
}
