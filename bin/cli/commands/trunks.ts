import { API_OPTIONS, openApi } from '../api-access.ts';
import type { Api } from '../api-client.ts';
import { type Command, CommandError, defineAction, type Options, UsageError, type ValuesOf } from '../command.ts';
import { fields, table } from '../terminal.ts';

/** As the API shows it; the password is never shown. */
interface Trunk {
  id: string;
  name: string;
  sip_uri: string;
  transport: string;
  username: string | null;
  codecs: string[];
  channels: number;
  allowed_prefixes: string[];
  numbers: string[];
  status: string;
  default_caller_id: string | null;
  price_per_minute_usd: number;
  created_at: string;
}

/** What `add` and `set` have in common. Lists are given with commas. */
const TRUNK_OPTIONS = {
  transport: { value: 'udp|tcp', about: 'default udp' },
  username: { value: 'TEXT', about: 'for the digest authentication of the carrier' },
  'password-stdin': { about: 'read its password from standard input, so that no list of processes shows it' },
  codecs: { value: 'LIST', about: 'of PCMU and PCMA, in order of preference (default PCMU,PCMA)' },
  channels: { value: 'N', about: 'calls at a time (default 10)' },
  prefixes: { value: 'LIST', about: 'destinations that may be called, such as +91,+4930; "" allows all' },
  numbers: { value: 'LIST', about: 'the numbers the carrier gave, in +E.164' },
  'caller-id': { value: 'NUMBER', about: 'one of its numbers, shown to whoever is called' },
  price: { value: 'USD', about: 'of one minute, at most nine decimals (default 0)' },
} as const satisfies Options;

const list = defineAction({
  summary: 'The trunks that the workspace of the key may call over.',
  options: API_OPTIONS,
  async run({ values }) {
    const trunks = await allTrunks(openApi(values));
    const text = table(
      ['ID', 'NAME', 'SIP', 'STATUS', 'CHANNELS', 'NUMBERS', 'USD/MIN'],
      trunks.map((trunk) => [
        trunk.id,
        trunk.name,
        trunk.sip_uri,
        trunk.status,
        trunk.channels,
        trunk.numbers.length,
        trunk.price_per_minute_usd,
      ]),
      'There is no trunk yet: tandem trunks add NAME SIP_URI makes one.',
    );
    return { data: { trunks }, text };
  },
});

const show = defineAction({
  summary: 'One trunk.',
  parameters: [{ name: 'ID|NAME', about: 'of tandem trunks list' }],
  options: API_OPTIONS,
  async run({ values, arguments: [idOrName = ''] }) {
    return outcomeOf(await findTrunk(openApi(values), idOrName));
  },
});

const add = defineAction({
  summary: 'Adds a trunk. Calls can go out over it once a number of it is rented.',
  parameters: [
    { name: 'NAME', about: 'to tell trunks apart' },
    { name: 'SIP_URI', about: 'such as sip:carrier.example:5060' },
  ],
  options: {
    ...TRUNK_OPTIONS,
    rent: { about: 'rent its numbers for the workspace at once' },
    ...API_OPTIONS,
  },
  async run({ values, arguments: [name, sipUri] }) {
    const api = openApi(values);
    const trunk = await api.post<Trunk>('/dialer/trunks', { name, sip_uri: sipUri, ...(await fieldsOf(values)) });
    if (values.rent) await rentNumbers(api, trunk);
    return outcomeOf(trunk);
  },
});

const set = defineAction({
  summary: 'Changes a trunk: only what is given changes.',
  parameters: [{ name: 'ID|NAME', about: 'of tandem trunks list' }],
  options: {
    name: { value: 'TEXT', about: 'a new name' },
    'sip-uri': { value: 'SIP_URI', about: 'such as sip:carrier.example:5060' },
    status: { value: 'active|disabled', about: 'calls go out over active ones' },
    ...TRUNK_OPTIONS,
    ...API_OPTIONS,
  },
  async run({ values, arguments: [idOrName = ''] }) {
    const changes = {
      ...(values.name !== undefined && { name: values.name }),
      ...(values['sip-uri'] !== undefined && { sip_uri: values['sip-uri'] }),
      ...(values.status !== undefined && { status: values.status }),
      ...(await fieldsOf(values)),
    };
    if (Object.keys(changes).length === 0) throw new UsageError('nothing to change is given: such as --channels 30');
    const api = openApi(values);
    const { id } = await findTrunk(api, idOrName);
    return outcomeOf(await api.patch<Trunk>(`/dialer/trunks/${id}`, changes));
  },
});

const remove = defineAction({
  summary: 'Removes a trunk and its numbers; its calls stay readable.',
  parameters: [{ name: 'ID|NAME', about: 'of tandem trunks list' }],
  options: API_OPTIONS,
  async run({ values, arguments: [idOrName = ''] }) {
    const api = openApi(values);
    const { id, name } = await findTrunk(api, idOrName);
    await api.delete(`/dialer/trunks/${id}`);
    return { data: { id, deleted: true }, text: `Trunk ${name} is removed.` };
  },
});

export const trunksCommand: Command = { actions: { list, show, add, set, remove } };

/** The fields of the API that were given. What they may be is for the API to say. */
async function fieldsOf(values: ValuesOf<typeof TRUNK_OPTIONS>): Promise<Record<string, unknown>> {
  const body = {
    transport: values.transport,
    username: values.username,
    password: values['password-stdin'] ? await readPassword() : undefined,
    codecs: values.codecs === undefined ? undefined : listOf(values.codecs),
    channels: values.channels === undefined ? undefined : numberOf('--channels', values.channels),
    allowed_prefixes: values.prefixes === undefined ? undefined : listOf(values.prefixes),
    numbers: values.numbers === undefined ? undefined : listOf(values.numbers),
    default_caller_id: values['caller-id'],
    price_per_minute_usd: values.price === undefined ? undefined : numberOf('--price', values.price),
  };
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

/** @throws CommandError with the code of the API; the trunk stays. */
async function rentNumbers(api: Api, { id, numbers }: Trunk): Promise<void> {
  for (const e164 of numbers) {
    await api.post('/dialer/numbers', { e164 }).catch((error: CommandError) => {
      const message = `the trunk is added as ${id}, but its number ${e164} is not rented: ${error.message}`;
      throw new CommandError(error.code, message, { cause: error });
    });
  }
}

function listOf(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function numberOf(option: string, text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new UsageError(`${option} takes a number, not ${JSON.stringify(text)}`);
  return Number(text);
}

/** The first line. */
async function readPassword(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write('Password: ');
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
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
  const all: Trunk[] = [];
  for (let page = 1; ; page += 1) {
    const path = `/dialer/trunks?page=${page}&limit=100`;
    const { trunks, pagination } = await api.get<{ trunks: Trunk[]; pagination: { pages: number } }>(path);
    all.push(...trunks);
    if (page >= pagination.pages) return all;
  }
}

function outcomeOf(trunk: Trunk) {
  const text = fields([
    ['id', trunk.id],
    ['name', trunk.name],
    ['sip', `${trunk.sip_uri} (${trunk.transport})`],
    ['status', trunk.status],
    ['username', trunk.username],
    ['codecs', trunk.codecs.join(', ')],
    ['channels', trunk.channels],
    ['prefixes', trunk.allowed_prefixes.join(', ') || 'all'],
    ['numbers', trunk.numbers.join(', ') || null],
    ['caller id', trunk.default_caller_id],
    ['price', `${trunk.price_per_minute_usd} USD a minute`],
  ]);
  return { data: trunk, text };
}
