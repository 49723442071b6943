import { writeFile } from 'node:fs/promises';
import { wavHeader } from '../../../media/wav.ts';
import { API_OPTIONS, openApi } from '../api-access.ts';
import { type Command, CommandError, defineAction, UsageError } from '../command.ts';

const speak = defineAction({
  summary: 'Speaks a text into a WAV file. Each character is billed.',
  parameters: [{ name: 'TEXT', about: 'what to say, at most 5000 characters; - reads it from standard input' }],
  options: {
    out: { value: 'FILE', about: 'the WAV file (default: speech.wav)' },
    voice: { value: 'VOICE', about: 'id of a voice, or the name of a built-in one such as hi (default: en-us)' },
    wpm: { value: 'N', about: 'pace in words per minute, 60 to 400 (default 137)' },
    rate: { value: 'HZ', about: 'samples per second, such as 8000 (default 24000)' },
    words: { about: 'print when each word begins and ends' },
    ...API_OPTIONS,
  },
  async run({ values, arguments: [given = ''], terminal }) {
    const text = given === '-' ? await readInput() : given;
    const path = values.out ?? 'speech.wav';
    const body = {
      text,
      voice_id: values.voice,
      wpm: numberOf('--wpm', values.wpm),
      audio_config: { audio_encoding: 'LINEAR16', sample_rate_hertz: numberOf('--rate', values.rate) },
    };
    const chunks: Buffer[] = [];
    let complete: Complete | null = null;
    for await (const line of openApi(values).lines<Line>('/tts-synthesize', body)) {
      if (line.type === 'error') throw new CommandError('SPEECH_BROKEN_OFF', line.message);
      if (line.type === 'complete') complete = line;
      else chunks.push(Buffer.from(line.result.audioContent, 'base64'));
      terminal.progress(`${chunks.length} chunks of speech`);
    }
    if (complete === null) throw new CommandError('SPEECH_BROKEN_OFF', 'the server stopped before all was said.');
    const audio = Buffer.concat(chunks);
    const header = wavHeader({ channels: 1, sampleRateHz: complete.sample_rate_hertz }, audio.byteLength);
    await writeFile(path, Buffer.concat([header, audio])).catch((cause: unknown) => {
      throw new CommandError('NOT_WRITTEN', `${path} cannot be written: ${(cause as Error).message}`, { cause });
    });
    const words = wordsOf(complete);
    const lines = [
      `${path}: ${complete.duration_seconds.toFixed(2)} s of speech at ${complete.sample_rate_hertz} Hz, ${complete.cost_usd} USD.`,
      ...(values.words ? words.map(({ word, start, end }) => `${start.toFixed(3)}  ${end.toFixed(3)}  ${word}`) : []),
    ];
    const { duration_seconds, sample_rate_hertz, voice_id, cost_usd } = complete;
    const data = { file: path, duration_seconds, sample_rate_hertz, voice_id, cost_usd, words };
    return { data, text: lines.join('\n') };
  },
});

export const speakCommand: Command = {
  action: speak,
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
  voice_id: string;
  cost_usd: number;
}

function wordsOf({ result }: Complete): { word: string; start: number; end: number }[] {
  const { words, wordStartTimeSeconds, wordEndTimeSeconds } = result.timestampInfo.wordAlignment;
  return words.map((word, index) => ({
    word,
    start: wordStartTimeSeconds[index] ?? 0,
    end: wordEndTimeSeconds[index] ?? 0,
  }));
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8').trim();
}

function numberOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,6}$/.test(text)) throw new UsageError(`${option} takes a whole number`);
  return Number(text);
}
