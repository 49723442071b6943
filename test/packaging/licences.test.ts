import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../root.ts';
import { modulesInProcess, packagesLoadedBy, refusedLicences } from './package-licences.ts';

describe('licences of the code in the server process', () => {
  const modules = modulesInProcess('main.ts');
  const packages = [...packagesLoadedBy(modules)].map((folder) => folder.slice(join(ROOT, 'node_modules/').length));

  it('permit loading, or are accepted for a reason', () => {
    expect(refusedLicences(packagesLoadedBy(modules))).toEqual([]);
  });

  it('cover every worker thread and lazily loaded code', () => {
    expect(modules.size).toBeGreaterThan(500);
    for (const thread of [
      'media/worker.ts',
      'media/listening/worker.ts',
      'speech/recognition/worker.ts',
      'speech/synthesis/worker.ts',
      'language/memory/vector-worker.ts',
      'actors/voices/voice-worker.ts',
      'sip/embedded/worker.ts',
    ]) {
      expect(modules).toContain(thread);
    }
    expect(packages).toEqual(
      expect.arrayContaining([
        ...['fastify', 'wasm-media-encoders', 'openai', '@ioredis/commands'],
        ...['prom-client', '@opentelemetry/sdk-trace', '@opentelemetry/exporter-trace-otlp-http'],
      ]),
    );
  });

  it('exclude engines and readers that run as child processes', () => {
    expect(modules).not.toContain('speech/engines/espeak-ng/espeak-child.ts');
    expect(modules).not.toContain('media/audio-file/ffmpeg-wasm.ts');
    expect(packages).not.toContain('@echogarden/espeak-ng-emscripten');
    expect(packages).not.toContain('sherpa-onnx-node');
    expect(packages).not.toContain('@ffmpeg/core');
  });

  it.each(['@echogarden/espeak-ng-emscripten', '@ffmpeg/core', 'sherpa-onnx-node'])('forbid %s', (name) => {
    expect(refusedLicences([join(ROOT, 'node_modules', name)])).toEqual([expect.stringMatching(`^${name}: GPL-`)]);
  });
});
