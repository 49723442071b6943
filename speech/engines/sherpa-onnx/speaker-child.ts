import sherpa from 'sherpa-onnx-node';
import { serveEngine } from '../../engine-process/engine-child.ts';

// Only our own embedder starts this process, so the argument is trusted.
serveEngine((argument) => {
  const { model } = argument as { model: string };
  const extractor = new sherpa.SpeakerEmbeddingExtractor({ model, numThreads: 1, provider: 'cpu' });
  return {
    embed(_, body) {
      const pcm = new Int16Array(body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength));
      const stream = extractor.createStream();
      stream.acceptWaveform({ sampleRate: 16_000, samples: Float32Array.from(pcm, (sample) => sample / 32_768) });
      stream.inputFinished();
      // Copied, because some builds of Node forbid external buffers of addons.
      return extractor.isReady(stream) ? [...extractor.compute(stream, false)] : null;
    },
  };
});
