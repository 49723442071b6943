import { type Api, ApiError } from '../cli/api-client.ts';

/** Texts that the platform speaks: to the agent, and in the customer's place. */
export const PROMPTS = {
  announcement: 'Call from the Tandem demo.',
  whisper: 'Ticket 4711.',
  farewell: 'Thank you, goodbye.',
} as const;

export type Prompts = Record<keyof typeof PROMPTS, Int16Array>;

type Line = { type: 'chunk'; result: { audioContent: string } } | { type: 'complete' | 'error'; message?: string };

/** Synthesizes a text at 8 kHz. @throws ApiError */
export async function spokenByPlatform(api: Pick<Api, 'lines'>, text: string): Promise<Int16Array> {
  const chunks: Buffer[] = [];
  const body = { text, audio_config: { audio_encoding: 'LINEAR16', sample_rate_hertz: 8_000 } };
  for await (const line of api.lines<Line>('/tts-synthesize', body)) {
    if (line.type === 'error') throw new ApiError('TTS_UNAVAILABLE', line.message ?? 'the speech engine failed');
    if (line.type === 'chunk' && 'result' in line) chunks.push(Buffer.from(line.result.audioContent, 'base64'));
  }
  return new Int16Array(Uint8Array.from(Buffer.concat(chunks)).buffer);
}

export async function spokenForDemo(api: Pick<Api, 'lines'>): Promise<Prompts> {
  const [announcement, whisper, farewell] = await Promise.all([
    spokenByPlatform(api, PROMPTS.announcement),
    spokenByPlatform(api, PROMPTS.whisper),
    spokenByPlatform(api, PROMPTS.farewell),
  ]);
  return { announcement, whisper, farewell };
}
