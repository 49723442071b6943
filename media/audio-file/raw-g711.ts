import type { AudioFormat } from '../../machines/utterances.ts';

const EXTENSIONS: Readonly<Record<string, AudioFormat['encoding']>> = {
  ulaw: 'mulaw',
  mulaw: 'mulaw',
  ul: 'mulaw',
  pcmu: 'mulaw',
  alaw: 'alaw',
  al: 'alaw',
  pcma: 'alaw',
};

/** RFC 3551 (audio/PCMU, audio/PCMA), RFC 2046 (audio/basic), and common other names. */
const MEDIA_TYPES: Readonly<Record<string, AudioFormat['encoding']>> = {
  'audio/basic': 'mulaw',
  'audio/pcmu': 'mulaw',
  'audio/mulaw': 'mulaw',
  'audio/x-mulaw': 'mulaw',
  'audio/ulaw': 'mulaw',
  'audio/pcma': 'alaw',
  'audio/alaw': 'alaw',
  'audio/x-alaw': 'alaw',
};

/** Format of headerless G.711, by file extension or media type; null for other files. */
export function rawG711Format({ fileName, mediaType }: { fileName: string; mediaType: string }): AudioFormat | null {
  const extension = /\.([a-z0-9]+)$/i.exec(fileName)?.[1]?.toLowerCase() ?? '';
  const type = mediaType.split(';', 1)[0]!.trim().toLowerCase();
  const encoding = lookUp(EXTENSIONS, extension) ?? lookUp(MEDIA_TYPES, type);
  return encoding === undefined ? null : { encoding, sampleRateHz: 8_000, channels: 1 };
}

/** Whether a file starts like a container, whatever its name and type: `audio/basic` is also the type of any AU file. */
export function isContainer(head: Buffer): boolean {
  return CONTAINER.test(head.toString('latin1'));
}

/** AU, WAV, AIFF, CAF, Ogg, FLAC, MP3 with a tag, Matroska and MP4. */
const CONTAINER = /^(?:\.snd|(?:RIFF|RF64).{4}WAVE|FORM.{4}AIF|caff|OggS|fLaC|ID3|.E\xdf\xa3|.{4}ftyp)/s;

function lookUp<Value>(table: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}
