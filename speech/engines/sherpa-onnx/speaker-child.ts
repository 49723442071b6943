import sherpa from 'sherpa-onnx-node';
import { serveEngine } from '../../engine-process/engine-child.ts';

// The argument is of our own embedder: nobody else starts this process.
serveEngine((argument) => {
  const { model } = argument as { model: string };
  const extractor = new sherpa.SpeakerEmbeddingExtractor({ model, numThreads: 1, provider: 'cpu' });
  return {
    embed(_, body) {
      const pcm = new Int16Array(body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength));
      const stream = extractor.createStream();
      stream.acceptWaveform({ sampleRate: 16_000, samples: Float32Array.from(pcm, (sample) => sample / 32_768) });
      stream.inputFinished();
      // Memory of the addon cannot be handed out of it under every build of Node.
      return extractor.isReady(stream) ? [...extractor.compute(stream, false)] : null;
    },
  };
});
