/** Tags of the `fmt ` chunk (RFC 2361). */
const FORMATS = { LINEAR16: 1, ALAW: 6, MULAW: 7 } as const;

export type RawEncoding = keyof typeof FORMATS;

export function isRaw(encoding: string): encoding is RawEncoding {
  return Object.hasOwn(FORMATS, encoding);
}

/** Adds a WAV header to raw mono audio, so that browsers play it. */
export function wavOf(audio: Uint8Array<ArrayBuffer>, encoding: RawEncoding, sampleRateHz: number): Blob {
  const bytesPerSample = encoding === 'LINEAR16' ? 2 : 1;
  const header = new DataView(new ArrayBuffer(44));
  const text = (offset: number, value: string) => {
    for (let index = 0; index < value.length; index++) header.setUint8(offset + index, value.charCodeAt(index));
  };
  text(0, 'RIFF');
  header.setUint32(4, 36 + audio.length, true);
  text(8, 'WAVEfmt ');
  header.setUint32(16, 16, true);
  header.setUint16(20, FORMATS[encoding], true);
  header.setUint16(22, 1, true);
  header.setUint32(24, sampleRateHz, true);
  header.setUint32(28, sampleRateHz * bytesPerSample, true);
  header.setUint16(32, bytesPerSample, true);
  header.setUint16(34, 8 * bytesPerSample, true);
  text(36, 'data');
  header.setUint32(40, audio.length, true);
  return new Blob([header, audio], { type: 'audio/wav' });
}
