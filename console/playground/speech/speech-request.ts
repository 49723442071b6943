import type { HttpCommand } from '../command.ts';

export const ENCODINGS = ['MP3', 'OGG_OPUS', 'WAV', 'LINEAR16', 'MULAW', 'ALAW'] as const;
export type Encoding = (typeof ENCODINGS)[number];

export const RATES_HZ = [8_000, 16_000, 22_050, 24_000, 44_100, 48_000] as const;
export type RateHz = (typeof RATES_HZ)[number];

export const MAX_CHARACTERS = 5_000;

export interface SpeechForm {
  mode: 'text' | 'ssml';
  text: string;
  /** Null: the server chooses. */
  voiceId: string | null;
  speed: number;
  /** In semitones. Needs SSML, so a plain text becomes SSML. */
  pitch: number;
  stability: number;
  encoding: Encoding;
  rateHz: RateHz;
  isStreamed: boolean;
}

/** File extension and media type of each encoding. */
export const FILES: Record<Encoding, { ending: string; mediaType: string }> = {
  MP3: { ending: 'mp3', mediaType: 'audio/mpeg' },
  OGG_OPUS: { ending: 'ogg', mediaType: 'audio/ogg' },
  WAV: { ending: 'wav', mediaType: 'audio/wav' },
  LINEAR16: { ending: 'pcm', mediaType: 'audio/pcm' },
  MULAW: { ending: 'ulaw', mediaType: 'audio/PCMU' },
  ALAW: { ending: 'alaw', mediaType: 'audio/PCMA' },
};

/** Body of `POST /tts-stream`. */
export function speechRequestOf(form: SpeechForm) {
  return {
    text: textOf(form),
    ...(form.voiceId !== null && { voice_id: form.voiceId }),
    ...(form.speed !== 1 && { speed: form.speed }),
    ...(form.stability !== 50 && { stability: form.stability }),
    audio_config: { audio_encoding: form.encoding, sample_rate_hertz: form.rateHz },
  };
}

/** A command that writes the audio to a file. */
export function speechCommandOf(form: SpeechForm): HttpCommand {
  const { ending, mediaType } = FILES[form.encoding];
  return {
    method: 'POST',
    path: '/tts-stream',
    accept: mediaType,
    json: speechRequestOf(form),
    output: `speech.${ending}`,
    isStreamed: form.isStreamed,
  };
}

/** Characters of the request as the server counts them, with the markup that a pitch adds. */
export function lengthOf(form: Pick<SpeechForm, 'mode' | 'text' | 'pitch'>): number {
  return form.text === '' ? 0 : [...textOf(form)].length;
}

function textOf({ mode, text, pitch }: Pick<SpeechForm, 'mode' | 'text' | 'pitch'>): string {
  if (mode === 'ssml' || pitch === 0) return text;
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `<speak><prosody pitch="${pitch > 0 ? '+' : ''}${pitch}st">${escaped}</prosody></speak>`;
}
