import { type MonoWav, writeMonoWav } from '../../media/audio-file/mono-wav.ts';
import { serveThread } from '../../runtime/serve-thread.ts';
import { hearVoice } from './voice-hearing.ts';
import type { VoiceThread } from './voice-thread.ts';

/** The thread of one task, see `runVoiceTask`. */
await serveThread<VoiceThread>(() => ({
  ready: null,
  calls: {
    async convert({ files }) {
      const written: MonoWav[] = [];
      for (const { source, wavPath } of files) written.push(await writeMonoWav(source, wavPath));
      return written;
    },
    hear: ({ wavPaths }) => hearVoice(wavPaths),
  },
}));
