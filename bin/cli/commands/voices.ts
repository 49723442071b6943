import { setTimeout as sleep } from 'node:timers/promises';
import { API_OPTIONS, openApi } from '../api-access.ts';
import type { Api } from '../api-client.ts';
import { type Command, CommandError, defineAction, UsageError } from '../command.ts';
import { pathIn } from '../host.ts';
import { fields, table } from '../terminal.ts';

/** As `GET /voices` lists it. */
interface ListedVoice {
  voice_id: string;
  name: string;
  model: string;
  labels: { language: string; language_name: string; gender: string | null; accent: string };
  wpm: number | null;
  is_custom: boolean;
  status: string;
}

/** As `GET /voices/:id` returns it. */
interface Voice {
  id: string;
  name: string;
  description: string | null;
  language: string;
  gender: string | null;
  accent: string;
  model: string;
  wpm: number | null;
  status: string;
  approximate: boolean | null;
  error: string | null;
  sample_url: string | null;
}

const PAGE_LENGTH = 100;

async function allVoices(api: Api, model: string | undefined): Promise<ListedVoice[]> {
  const voices: ListedVoice[] = [];
  for (let page = 1; ; page++) {
    const paging = { page: String(page), limit: String(PAGE_LENGTH) };
    const query = new URLSearchParams({ status: 'all', ...(model !== undefined && { model }), ...paging });
    const listed = await api.get<ListedVoice[]>(`/voices?${query}`);
    voices.push(...listed);
    if (listed.length < PAGE_LENGTH) return voices;
  }
}

const list = defineAction({
  summary: 'List voices: those of the workspace in any state, then built-in ones.',
  options: {
    model: { value: 'quality|fast', about: 'professional voices, or cloned and plain ones (default: quality)' },
    language: { value: 'CODE', about: 'only voices of the language, such as hi' },
    ...API_OPTIONS,
  },
  async run({ host, values }) {
    const all = await allVoices(openApi(host, values), values.model);
    const voices = all.filter(({ labels }) => values.language === undefined || labels.language === values.language);
    const text = table(
      ['ID', 'NAME', 'LANGUAGE', 'GENDER', 'ACCENT', 'WPM', 'STATUS'],
      voices.map(({ voice_id, name, labels, wpm, status, is_custom }) => [
        ...[voice_id, name, labels.language_name, labels.gender, labels.accent],
        wpm === null ? null : Math.round(wpm),
        is_custom ? `${status}, yours` : status,
      ]),
      'No voice matches. --model fast lists others.',
    );
    return { data: { voices }, text };
  },
});

const show = defineAction({
  summary: 'Show a voice with a sample.',
  parameters: [{ name: 'VOICE', about: 'id from tandem voices list, or a short name such as en-us' }],
  options: API_OPTIONS,
  async run({ host, values, arguments: [voiceId = ''] }) {
    return outcomeOf(await getVoice(openApi(host, values), voiceId));
  },
});

const create = defineAction({
  summary: 'Clone a voice from recordings of a consenting speaker, and wait until it is ready.',
  parameters: [
    { name: 'NAME', about: 'name of the voice' },
    { name: 'FILE', about: 'audio of one speaker, 5 seconds to 10 minutes, up to 25 MB' },
  ],
  options: {
    language: { value: 'CODE', about: 'spoken language, such as en' },
    description: { value: 'TEXT', about: 'description of the voice' },
    gender: { value: 'female|male', about: 'shown in lists' },
    consent: { about: 'confirm that the speaker consents' },
    'no-wait': { about: 'do not wait until it is ready' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [name = '', file = ''], terminal }) {
    if (values.language === undefined) throw new UsageError('--language says what is spoken, such as --language en');
    if (!values.consent) throw new UsageError('--consent says that the speaker agrees; no voice is made without');
    const api = openApi(host, values);
    const given = Object.entries({
      name,
      language: values.language,
      description: values.description,
      labels: values.gender && JSON.stringify({ gender: values.gender }),
      consent: 'true',
    }).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const upload = { filePath: pathIn(host.cwd(), file), fileField: 'files', fields: given, onProgress: () => {} };
    const { data } = await api.upload<{ data: { voice_id: string } }>('/voices', upload);
    let voice = await getVoice(api, data.voice_id);
    while (!values['no-wait'] && voice.status === 'processing') {
      terminal.progress('the voice is being made');
      await sleep(POLL_MS);
      voice = await getVoice(api, data.voice_id);
    }
    if (voice.status !== 'failed') return outcomeOf(voice);
    return { ...outcomeOf(voice), failure: { code: 'VOICE_FAILED', message: voice.error ?? 'the voice failed' } };
  },
});

const remove = defineAction({
  summary: 'Delete a voice of the workspace and its samples.',
  parameters: [{ name: 'VOICE', about: 'id from tandem voices list' }],
  options: API_OPTIONS,
  async run({ host, values, arguments: [voiceId = ''] }) {
    await openApi(host, values).delete(`/voices/${encodeURIComponent(voiceId)}`);
    return { data: { id: voiceId, deleted: true }, text: `Voice ${voiceId} is removed.` };
  },
});

export const voicesCommand: Command = { actions: { list, show, create, delete: remove } };

const POLL_MS = 500;

/** @throws CommandError with the code of the API */
async function getVoice(api: Api, voiceId: string): Promise<Voice> {
  if (voiceId === '') throw new CommandError('VOICE_NOT_FOUND', 'name a voice: tandem voices list shows all.');
  return await api.get<Voice>(`/voices/${encodeURIComponent(voiceId)}`);
}

function outcomeOf(voice: Voice) {
  const text = fields([
    ['id', voice.id],
    ['name', voice.name],
    ['model', voice.model],
    ['status', voice.error === null ? voice.status : `${voice.status}: ${voice.error}`],
    ['language', voice.language],
    ['gender', voice.gender],
    ['accent', voice.accent],
    ['pace', voice.wpm === null ? null : `${Math.round(voice.wpm)} words a minute`],
    ['kind', voice.approximate === null ? null : voice.approximate ? 'fitted to the speaker' : 'cloned'],
    ['description', voice.description],
    ['sample', voice.sample_url],
  ]);
  return { data: voice, text };
}
