import { API_OPTIONS, openApi } from '../api-access.ts';
import type { Api } from '../api-client.ts';
import { type Command, CommandError, defineAction, type Options, UsageError, type ValuesOf } from '../command.ts';
import { everyPage } from '../every-page.ts';
import type { CommandHost } from '../host.ts';
import { listOf } from '../option-values.ts';
import { fields, table } from '../terminal.ts';

/** As the API returns it, without the password. */
interface Trunk {
  id: string;
  name: string;
  sip_uri: string;
  transport: string;
  username: string | null;
  codecs: string[];
  media_encryption: string;
  channels: number;
  gateways: { sip_uri: string; transport: string; priority: number; weight: number; reachability: { state: string } }[];
  health: { mode: string; interval_seconds: number };
  refer: string;
  inbound_auth: { username: string } | null;
  registration: { state: string; expires_at: string | null; last_error: string | null } | null;
  reachability: { state: string; since: string | null; reason: string };
  allowed_prefixes: string[];
  numbers: string[];
  status: string;
  default_caller_id: string | null;
  price_per_minute_usd: number;
  created_at: string;
}

/** Options of both `add` and `set`. Lists are separated by commas. */
const TRUNK_OPTIONS = {
  transport: { value: 'udp|tcp|tls|auto', about: 'default udp; auto: as the DNS of the carrier says' },
  gateways: {
    value: 'LIST',
    about: 'SIP URIs to try in this order, the SIP URI of the trunk first; "" leaves only that',
  },
  username: { value: 'TEXT', about: 'user name for digest authentication' },
  'password-stdin': { about: 'read the password from standard input, which keeps it out of process lists' },
  codecs: { value: 'LIST', about: 'codecs in order of preference: PCMU, PCMA, G722, OPUS, CN (default PCMU,PCMA)' },
  encryption: { value: 'none|optional|required', about: 'media encryption with SRTP (default none)' },
  channels: { value: 'N', about: 'concurrent calls (default 10)' },
  register: { value: 'yes|no', about: 'register the user name at the carrier (default no)' },
  health: { value: 'options|none', about: 'whether to probe the carrier with OPTIONS (default options)' },
  'health-interval': { value: 'SECONDS', about: 'time between probes, 10 to 3600 (default 30)' },
  refer: { value: 'none|agent|both', about: 'who may transfer calls from a phone, with REFER (default none)' },
  'inbound-user': {
    value: 'TEXT',
    about: 'user name that inbound calls from other addresses prove, with --inbound-password-stdin; "" none',
  },
  'inbound-password-stdin': { about: 'read the password for --inbound-user from standard input' },
  prefixes: { value: 'LIST', about: 'allowed destination prefixes, such as +91,+4930; "" allows all' },
  numbers: { value: 'LIST', about: 'numbers that the carrier assigned, in +E.164' },
  'caller-id': { value: 'NUMBER', about: 'default caller ID: one of its numbers' },
  price: { value: 'USD', about: 'price per minute, at most nine decimals (default 0)' },
} as const satisfies Options;

const list = defineAction({
  summary: 'List the trunks of the workspace.',
  options: API_OPTIONS,
  async run({ host, values }) {
    const trunks = await allTrunks(openApi(host, values));
    const text = table(
      ['ID', 'NAME', 'SIP', 'STATUS', 'CHANNELS', 'NUMBERS', 'USD/MIN', 'CARRIER'],
      trunks.map((trunk) => [
        trunk.id,
        trunk.name,
        trunk.sip_uri,
        trunk.status,
        trunk.channels,
        trunk.numbers.length,
        trunk.price_per_minute_usd,
        trunk.reachability.state,
      ]),
      'No trunk exists yet. Add one with tandem trunks add NAME SIP_URI.',
    );
    return { data: { trunks }, text };
  },
});

const show = defineAction({
  summary: 'Show a trunk.',
  parameters: [{ name: 'ID|NAME', about: 'id or name from tandem trunks list' }],
  options: API_OPTIONS,
  async run({ host, values, arguments: [idOrName = ''] }) {
    return outcomeOf(await findTrunk(openApi(host, values), idOrName));
  },
});

const add = defineAction({
  summary: 'Add a trunk. Rent one of its numbers to place calls over it.',
  parameters: [
    { name: 'NAME', about: 'name of the trunk' },
    { name: 'SIP_URI', about: 'such as sip:carrier.example:5060' },
  ],
  options: {
    ...TRUNK_OPTIONS,
    rent: { about: 'also rent its numbers for the workspace' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [name, sipUri] }) {
    const api = openApi(host, values);
    const trunk = await api.post<Trunk>('/dialer/trunks', { name, sip_uri: sipUri, ...(await fieldsOf(host, values)) });
    if (values.rent) await rentNumbers(api, trunk);
    return outcomeOf(trunk);
  },
});

const set = defineAction({
  summary: 'Update a trunk. Options that you omit stay unchanged.',
  parameters: [{ name: 'ID|NAME', about: 'id or name from tandem trunks list' }],
  options: {
    name: { value: 'TEXT', about: 'a new name' },
    'sip-uri': { value: 'SIP_URI', about: 'such as sip:carrier.example:5060' },
    status: { value: 'active|disabled', about: 'calls use active trunks only' },
    ...TRUNK_OPTIONS,
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [idOrName = ''] }) {
    const changes = {
      ...(values.name !== undefined && { name: values.name }),
      ...(values['sip-uri'] !== undefined && { sip_uri: values['sip-uri'] }),
      ...(values.status !== undefined && { status: values.status }),
      ...(await fieldsOf(host, values)),
    };
    if (Object.keys(changes).length === 0) throw new UsageError('nothing to change is given: such as --channels 30');
    const api = openApi(host, values);
    const { id } = await findTrunk(api, idOrName);
    return outcomeOf(await api.patch<Trunk>(`/dialer/trunks/${id}`, changes));
  },
});

const remove = defineAction({
  summary: 'Delete a trunk and its numbers. Its calls remain readable.',
  parameters: [{ name: 'ID|NAME', about: 'id or name from tandem trunks list' }],
  options: API_OPTIONS,
  async run({ host, values, arguments: [idOrName = ''] }) {
    const api = openApi(host, values);
    const { id, name } = await findTrunk(api, idOrName);
    await api.delete(`/dialer/trunks/${id}`);
    return { data: { id, deleted: true }, text: `Trunk ${name} is removed.` };
  },
});

export const trunksCommand: Command = { actions: { list, show, add, set, remove } };

/** Request body with the given fields. The API validates them. */
async function fieldsOf(host: CommandHost, values: ValuesOf<typeof TRUNK_OPTIONS>): Promise<Record<string, unknown>> {
  const body = {
    transport: values.transport,
    gateways: values.gateways === undefined ? undefined : gatewaysOf(values.gateways),
    username: values.username,
    password: values['password-stdin'] ? await readPassword(host) : undefined,
    codecs: values.codecs === undefined ? undefined : listOf(values.codecs),
    media_encryption: values.encryption,
    channels: values.channels === undefined ? undefined : numberOf('--channels', values.channels),
    register: values.register === undefined ? undefined : yesOrNo('--register', values.register),
    health: healthOf(values),
    refer: values.refer,
    inbound_auth: await inboundAuthOf(host, values),
    allowed_prefixes: values.prefixes === undefined ? undefined : listOf(values.prefixes),
    numbers: values.numbers === undefined ? undefined : listOf(values.numbers),
    default_caller_id: values['caller-id'],
    price_per_minute_usd: values.price === undefined ? undefined : numberOf('--price', values.price),
  };
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

async function inboundAuthOf(
  host: CommandHost,
  values: ValuesOf<typeof TRUNK_OPTIONS>,
): Promise<Record<string, string> | null | undefined> {
  const username = values['inbound-user'];
  const isGiven = values['inbound-password-stdin'] === true;
  if (isGiven && values['password-stdin']) {
    throw new UsageError('--password-stdin and --inbound-password-stdin cannot be used together: set them one by one');
  }
  if (username === '') return null;
  if (isGiven !== (username !== undefined)) {
    throw new UsageError('--inbound-user and --inbound-password-stdin belong together');
  }
  return username === undefined ? undefined : { username, password: await readPassword(host) };
}

/** In order of preference. */
function gatewaysOf(text: string): Record<string, unknown>[] {
  return listOf(text).map((sipUri, index) => ({ sip_uri: sipUri, priority: index }));
}

function yesOrNo(option: string, text: string): boolean {
  if (text !== 'yes' && text !== 'no') throw new UsageError(`${option} takes yes or no, not ${JSON.stringify(text)}`);
  return text === 'yes';
}

function healthOf(values: ValuesOf<typeof TRUNK_OPTIONS>): Record<string, unknown> | undefined {
  const interval = values['health-interval'];
  if (values.health === undefined && interval === undefined) return undefined;
  return {
    ...(values.health !== undefined && { mode: values.health }),
    ...(interval !== undefined && { interval_seconds: numberOf('--health-interval', interval) }),
  };
}

/** The trunk stays if this fails. @throws CommandError with the code of the API */
async function rentNumbers(api: Api, { id, numbers }: Trunk): Promise<void> {
  for (const e164 of numbers) {
    await api.post('/dialer/numbers', { e164 }).catch((error: CommandError) => {
      const message = `the trunk is added as ${id}, but its number ${e164} is not rented: ${error.message}`;
      throw new CommandError(error.code, message, { cause: error });
    });
  }
}

function numberOf(option: string, text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new UsageError(`${option} takes a number, not ${JSON.stringify(text)}`);
  return Number(text);
}

/** Reads the first line. */
async function readPassword({ stdin, stderr }: CommandHost): Promise<string> {
  if (stdin.isTTY) stderr.write('Password: ');
  let text = '';
  for await (const chunk of stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.includes('\n')) break;
  }
  return text.split(/\r?\n/, 1)[0] ?? '';
}

/** @throws CommandError TRUNK_NOT_FOUND, AMBIGUOUS_TRUNK */
async function findTrunk(api: Api, idOrName: string): Promise<Trunk> {
  const trunks = await allTrunks(api);
  const byId = trunks.find(({ id }) => id === idOrName.toLowerCase());
  const [named, second] = trunks.filter(({ name }) => name === idOrName);
  if (byId === undefined && second !== undefined) {
    const message = `several trunks are called ${JSON.stringify(idOrName)}: name one by its id (tandem trunks list).`;
    throw new CommandError('AMBIGUOUS_TRUNK', message);
  }
  const found = byId ?? named;
  if (found !== undefined) return found;
  throw new CommandError(
    'TRUNK_NOT_FOUND',
    `there is no trunk ${JSON.stringify(idOrName)}: tandem trunks list shows all.`,
  );
}

async function allTrunks(api: Api): Promise<Trunk[]> {
  return (await everyPage<{ trunks: Trunk[] }>(api, '/dialer/trunks')).flatMap(({ trunks }) => trunks);
}

function outcomeOf(trunk: Trunk) {
  const text = fields([
    ['id', trunk.id],
    ['name', trunk.name],
    ['sip', `${trunk.sip_uri} (${trunk.transport})`],
    ['gateways', trunk.gateways.length === 1 ? null : trunk.gateways.map(describeGateway).join(', ')],
    ['status', trunk.status],
    ['carrier', reachabilityOf(trunk)],
    ['health', trunk.health.mode === 'none' ? 'none' : `OPTIONS every ${trunk.health.interval_seconds} s`],
    ['refer', trunk.refer],
    ['inbound', trunk.inbound_auth === null ? null : `password of ${trunk.inbound_auth.username}`],
    ['username', trunk.username],
    ['registration', registrationOf(trunk)],
    ['codecs', trunk.codecs.join(', ')],
    ['encryption', trunk.media_encryption],
    ['channels', trunk.channels],
    ['prefixes', trunk.allowed_prefixes.join(', ') || 'all'],
    ['numbers', trunk.numbers.join(', ') || null],
    ['caller id', trunk.default_caller_id],
    ['price', `${trunk.price_per_minute_usd} USD a minute`],
  ]);
  return { data: trunk, text };
}

function describeGateway({ sip_uri, transport, priority, weight, reachability }: Trunk['gateways'][number]): string {
  return `${sip_uri} (${transport}, priority ${priority}, weight ${weight}, ${reachability.state})`;
}

function reachabilityOf({ reachability: { state, since, reason } }: Trunk): string {
  return `${state}${since === null ? '' : ` since ${since}`} (${reason.replaceAll('_', ' ')})`;
}

/** Null if the trunk does not register. */
function registrationOf({ registration }: Trunk): string | null {
  if (registration === null) return null;
  const { state, expires_at, last_error } = registration;
  const until = expires_at === null ? '' : ` until ${expires_at}`;
  return `${state}${until}${last_error === null ? '' : `, last error: ${last_error}`}`;
}
