import type { AudioFile } from '../../media/audio-file/audio-file.ts';
import { type MonoWav, writeMonoWav } from '../../media/audio-file/mono-wav.ts';
import { serveThread } from '../../runtime/serve-thread.ts';
import { type MeasuredVoice, measureSamples } from './measured-samples.ts';

export interface VoiceThread {
  data: null;
  ready: null;
  calls: {
    convert: { request: { files: { source: AudioFile['source']; wavPath: string }[] }; answer: MonoWav[] };
    /** Measures the voice in mono WAV files of one speaker. */
    measure: { request: { wavPaths: string[] }; answer: MeasuredVoice };
  };
  reports: never;
  notices: never;
}

/** Runs one task, see `runVoiceTask`. */
await serveThread<VoiceThread>(() => ({
  ready: null,
  calls: {
    async convert({ files }) {
      const written: MonoWav[] = [];
      for (const { source, wavPath } of files) written.push(await writeMonoWav(source, wavPath));
      return written;
    },
    measure: ({ wavPaths }) => measureSamples(wavPaths),
  },
}));
