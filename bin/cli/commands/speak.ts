import { access, constants, stat, writeFile } from 'node:fs/promises';
import { dirname, extname } from 'node:path';
import { wavHeader } from '../../../media/wav.ts';
import { API_OPTIONS, openApi } from '../api-access.ts';
import { type Command, CommandError, defineAction, notWritten, UsageError } from '../command.ts';
import { pathIn } from '../host.ts';
import { numberOf } from '../option-values.ts';
import { readInput } from '../standard-input.ts';

const speak = defineAction({
  summary: 'Synthesise text or SSML into an audio file. Billed per character.',
  parameters: [{ name: 'TEXT', about: 'text, at most 5000 characters; - reads standard input' }],
  options: {
    out: { value: 'FILE', about: 'output file; its extension selects the encoding (default: speech.wav)' },
    voice: { value: 'VOICE', about: 'voice id or short name such as hi (default: en-us)' },
    wpm: { value: 'N', about: 'pace in words per minute, 60 to 400 (default: the pace of the voice)' },
    speed: { value: 'X', about: 'factor on the pace, 0.5 to 2 (default 1)' },
    stability: { value: 'N', about: 'steadiness of the pitch, 0 to 100 (default 50)' },
    similarity: { value: 'N', about: "closeness to the voice's own sound, 0 to 100 (default 75)" },
    plain: { about: 'do not enhance level and clarity' },
    rate: { value: 'HZ', about: 'sample rate, 8000 to 48000 (default 24000; 8000 for .ulaw and .alaw)' },
    words: { about: 'print the timestamps of all words' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [given = ''], terminal }) {
    const text = given === '-' ? await readInput(host) : given;
    const path = values.out ?? 'speech.wav';
    const { encoding, rateHz, isWav } = fileTypeOf(path);
    const body = {
      text,
      voice_id: values.voice,
      wpm: numberOf('--wpm', values.wpm),
      speed: numberOf('--speed', values.speed),
      stability: numberOf('--stability', values.stability),
      similarity: numberOf('--similarity', values.similarity),
      enhance: values.plain ? false : undefined,
      audio_config: { audio_encoding: encoding, sample_rate_hertz: numberOf('--rate', values.rate) ?? rateHz },
    };
    const file = pathIn(host.cwd(), path);
    const refuseToWrite = (cause: unknown) => {
      throw notWritten(path, cause);
    };
    // The server charges before the speech can be written.
    const present = await stat(file).catch(() => null);
    if (present?.isDirectory()) refuseToWrite(new Error('it is a folder'));
    await access(present === null ? `${dirname(file)}/` : file, constants.W_OK).catch(refuseToWrite);
    const chunks: Buffer[] = [];
    let complete: Complete | null = null;
    for await (const line of openApi(host, values).lines<Line>('/tts-synthesize', body)) {
      if (line.type === 'error') throw new CommandError('SPEECH_BROKEN_OFF', line.message);
      if (line.type === 'complete') complete = line;
      else chunks.push(Buffer.from(line.result.audioContent, 'base64'));
      terminal.progress(`${chunks.length} chunks of speech`);
    }
    if (complete === null) throw new CommandError('SPEECH_BROKEN_OFF', 'the server stopped before all was said.');
    const { duration_seconds, sample_rate_hertz, audio_encoding, voice_id, cost_usd } = complete;
    const audio = Buffer.concat(chunks);
    if (isWav) chunks.unshift(wavHeader({ channels: 1, sampleRateHz: sample_rate_hertz }, audio.byteLength));
    await writeFile(file, Buffer.concat(chunks)).catch(refuseToWrite);
    const words = wordsOf(complete);
    const lines = [
      `${path}: ${duration_seconds.toFixed(2)} s of speech at ${sample_rate_hertz} Hz, ${cost_usd} USD.`,
      ...(values.words ? words.map(({ word, start, end }) => `${start.toFixed(3)}  ${end.toFixed(3)}  ${word}`) : []),
    ];
    const data = { file: path, duration_seconds, sample_rate_hertz, audio_encoding, voice_id, cost_usd, words };
    return { data, text: lines.join('\n') };
  },
});

export const speakCommand: Command = {
  action: speak,
  notes: `Files:
  .wav                  16-bit PCM with a header
  .raw, .pcm            the same without
  .mp3                  MP3
  .ogg, .opus           Opus in Ogg
  .ulaw, .alaw          G.711 without a header, as telephone exchanges play it`,
};

type Line = { type: 'chunk'; result: { audioContent: string } } | Complete | { type: 'error'; message: string };

interface Complete {
  type: 'complete';
  result: {
    timestampInfo: {
      wordAlignment: { words: string[]; wordStartTimeSeconds: number[]; wordEndTimeSeconds: number[] };
    };
  };
  duration_seconds: number;
  sample_rate_hertz: number;
  audio_encoding: string;
  voice_id: string;
  cost_usd: number;
}

interface FileType {
  encoding: 'LINEAR16' | 'MP3' | 'OGG_OPUS' | 'MULAW' | 'ALAW';
  /** Default: the server's. */
  rateHz?: number;
  isWav?: true;
}

const FILE_TYPES: Readonly<Record<string, FileType>> = {
  '.wav': { encoding: 'LINEAR16', isWav: true },
  '.raw': { encoding: 'LINEAR16' },
  '.pcm': { encoding: 'LINEAR16' },
  '.mp3': { encoding: 'MP3' },
  '.ogg': { encoding: 'OGG_OPUS' },
  '.opus': { encoding: 'OGG_OPUS' },
  '.ulaw': { encoding: 'MULAW', rateHz: 8000 },
  '.mulaw': { encoding: 'MULAW', rateHz: 8000 },
  '.ul': { encoding: 'MULAW', rateHz: 8000 },
  '.alaw': { encoding: 'ALAW', rateHz: 8000 },
  '.al': { encoding: 'ALAW', rateHz: 8000 },
};

function fileTypeOf(path: string): FileType {
  const type = FILE_TYPES[extname(path).toLowerCase()];
  if (type !== undefined) return type;
  throw new UsageError(`--out ${path}: its name ends in none of ${Object.keys(FILE_TYPES).join(', ')}`);
}

function wordsOf({ result }: Complete): { word: string; start: number; end: number }[] {
  const { words, wordStartTimeSeconds, wordEndTimeSeconds } = result.timestampInfo.wordAlignment;
  return words.map((word, index) => ({
    word,
    start: wordStartTimeSeconds[index] ?? 0,
    end: wordEndTimeSeconds[index] ?? 0,
  }));
}
