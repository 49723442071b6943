import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { access, constants, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { replaceFetchTransport } from '../../../runtime/fetch-transport.ts';
import { API_OPTIONS, openApi } from '../api-access.ts';
import { type Api, ApiError, unbroken } from '../api-client.ts';
import { type Command, CommandError, defineAction, notWritten, UsageError } from '../command.ts';
import { pathIn } from '../host.ts';
import { switchOf } from '../option-values.ts';
import { fields, type Terminal } from '../terminal.ts';

/** Response of `POST /dialer/click2call/:id/recording`. */
interface Recording {
  recording_id: string;
  recording_format: string;
  recording_channels: string;
  recording_size: number | null;
  recording_duration_ms: number | null;
  playback_url: string;
  expires_at: string;
  peaks_url: string | null;
}

interface Settings {
  retention_days: number | null;
  recording_beep: boolean;
}

const ID = { name: 'ID', about: 'call_id, reference_id or recording_id' };
const FORM_OPTIONS = {
  format: { value: 'FORMAT', about: 'wav, mp3 or opus (default wav)' },
  channels: { value: 'CHANNELS', about: 'stereo: agent left, customer right; or mono (default stereo)' },
} as const;

const show = defineAction({
  summary: 'Show a recording with a URL that plays it for five minutes.',
  parameters: [ID],
  options: { ...FORM_OPTIONS, ...API_OPTIONS },
  async run({ host, values, arguments: [id = ''], terminal }) {
    const recording = await mint(openApi(host, values), { id, form: values, terminal });
    return { data: { recording }, text: describe(recording) };
  },
});

const download = defineAction({
  summary: 'Download a recording, or its peaks.',
  parameters: [ID],
  options: {
    out: { value: 'FILE', about: 'output file (default: the recording id with its extension)' },
    ...FORM_OPTIONS,
    peaks: { about: 'download the peaks, JSON for players that draw a waveform' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [id = ''], terminal }) {
    const api = openApi(host, values);
    let recording = await mint(api, { id, form: values, terminal });
    while (values.peaks && recording.peaks_url === null) {
      terminal.progress('the peaks are being computed');
      await sleep(POLL_MS);
      recording = await mint(api, { id, form: values, terminal });
    }
    const url = values.peaks ? (recording.peaks_url as string) : recording.playback_url;
    const file = values.out ?? `${recording.recording_id}.${values.peaks ? 'peaks.json' : extensionOf(recording)}`;
    await save(url, { file, path: pathIn(host.cwd(), file) });
    return { data: { file, recording }, text: `${file} is written.` };
  },
});

const settings = defineAction({
  summary: 'Show how long recordings are kept, or change that.',
  options: {
    'keep-days': { value: 'DAYS', about: 'delete recordings after 1 to 3650 days; forever keeps them' },
    beep: { value: 'on|off', about: 'play a tone to both parties when a recording starts' },
    ...API_OPTIONS,
  },
  async run({ host, values }) {
    const api = openApi(host, values);
    const beep = switchOf('--beep', values.beep);
    const changes = { ...retentionOf(values['keep-days']), ...(beep !== undefined && { recording_beep: beep }) };
    const path = '/dialer/recording-settings';
    const saved = Object.keys(changes).length === 0 ? api.get<Settings>(path) : api.patch<Settings>(path, changes);
    const data = await saved;
    const text = fields([
      ['kept', data.retention_days === null ? 'forever' : `${data.retention_days} days`],
      ['beep', data.recording_beep ? 'on' : 'off'],
    ]);
    return { data, text };
  },
});

export const recordingsCommand: Command = { actions: { show, download, settings } };

const POLL_MS = 1_000;

interface MintRequest {
  id: string;
  form: { format?: string; channels?: string };
  terminal: Terminal;
}

/** Creates the file and waits for its encoding. @throws ApiError */
async function mint(api: Api, { id, form, terminal }: MintRequest): Promise<Recording> {
  const query = new URLSearchParams();
  if (form.format !== undefined) query.set('format', form.format);
  if (form.channels !== undefined) query.set('channels', form.channels);
  for (;;) {
    try {
      const path = `/dialer/click2call/${encodeURIComponent(id)}/recording?${query}`;
      return (await api.post<{ recording: Recording }>(path)).recording;
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'RECORDING_ENCODING')) throw error;
      terminal.progress('the recording is being encoded');
      await sleep(POLL_MS);
    }
  }
}

async function save(url: string, { file, path }: { file: string; path: string }): Promise<void> {
  await replaceFetchTransport();
  const response = await fetch(url).catch((cause: unknown) => {
    throw new CommandError('UNREACHABLE', `${new URL(url).origin} cannot be reached. Check TANDEM_PUBLIC_URL.`, {
      cause,
    });
  });
  if (!response.ok || response.body === null) {
    throw new CommandError('NOT_DOWNLOADED', `${new URL(url).origin} answered ${response.status}. Try again.`);
  }
  await writeWhole(path, unbroken(response.body, url)).catch((cause: unknown) => {
    throw cause instanceof ApiError ? cause : notWritten(file, cause);
  });
}

/**
 * Writes a file that gets its name when it is complete. Writes straight to a device or pipe, and to a file in a folder
 * that allows no other.
 */
async function writeWhole(path: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  const earlier = await stat(path).catch(() => null);
  // Renaming would replace a protected file too.
  if (earlier !== null) await access(path, constants.W_OK);
  const target = earlier?.isFile() ? await realpath(path) : path;
  if (earlier !== null && !(earlier.isFile() && (await isWritable(dirname(target))))) {
    return await pipeline(bytes, createWriteStream(path));
  }
  const draft = `${target}.${randomUUID()}.partial`;
  try {
    await pipeline(bytes, createWriteStream(draft, { flags: 'wx', mode: earlier?.mode }));
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function isWritable(path: string): Promise<boolean> {
  return await access(path, constants.W_OK).then(
    () => true,
    () => false,
  );
}

function describe(recording: Recording): string {
  const { recording_duration_ms: ms } = recording;
  return fields([
    ['recording', recording.recording_id],
    ['format', `${recording.recording_format}, ${recording.recording_channels}`],
    ['size', recording.recording_size === null ? null : `${recording.recording_size} bytes`],
    ['duration', ms === null ? null : `${(ms / 1000).toFixed(1)} s`],
    ['url', recording.playback_url],
    ['peaks', recording.peaks_url],
    ['expires', recording.expires_at],
  ]);
}

function extensionOf({ recording_format: format }: Recording): string {
  return format === 'opus' ? 'ogg' : format;
}

function retentionOf(text: string | undefined): { retention_days?: number | null } {
  if (text === undefined) return {};
  if (text === 'forever') return { retention_days: null };
  if (!/^\d{1,4}$/.test(text)) throw new UsageError('--keep-days takes a number of days, or forever');
  return { retention_days: Number(text) };
}
