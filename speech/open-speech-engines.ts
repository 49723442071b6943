import { type EngineConfig, engineSettingsOf } from './engines/available-engines.ts';
import { type SynthesisConfig, synthesisSettingsOf } from './engines/available-synthesizers.ts';
import { logMissingServers } from './engines/missing-servers.ts';
import { logBrokenModels } from './models/broken-models.ts';
import { createSpeechRecognition, type SpeechRecognitionOptions } from './speech-recognition.thread.ts';
import type { SpeechRecognition } from './speech-recognition.ts';
import { createSpeechSynthesis } from './speech-synthesis.thread.ts';
import type { SpeechSynthesis } from './speech-synthesis.ts';
import { warmUpSpeech } from './synthesis/warm-up.ts';
import { createVoiceCatalogue, type VoiceCatalogueOptions } from './voices/built-in-voices.ts';
import type { VoiceCatalogue } from './voices/catalogue.ts';

export interface SpeechSettings extends EngineConfig, SynthesisConfig {
  readonly ttsEngine: VoiceCatalogueOptions['preferred'];
}

export interface SpeechEngines extends AsyncDisposable {
  readonly recognition: SpeechRecognition;
  readonly synthesis: SpeechSynthesis;
  readonly catalogue: VoiceCatalogue;
  /** Starts an engine process and compiles its code in the background, so that the first request is not slow. */
  warmUp(): void;
}

/** Starts the recognition thread and the synthesis thread at the same time. */
export async function openSpeechEngines(
  settings: SpeechSettings,
  { logger }: { logger: NonNullable<SpeechRecognitionOptions['logger']> },
): Promise<SpeechEngines> {
  await using opening = new AsyncDisposableStack();
  logMissingServers(settings, logger);
  const recognising = createSpeechRecognition({ settings: engineSettingsOf(settings), logger });
  opening.defer(() => closeQuietly(recognising));
  const synthesising = createSpeechSynthesis({ settings: synthesisSettingsOf(settings), logger });
  opening.defer(() => closeQuietly(synthesising));
  const [recognition, synthesis] = await Promise.all([recognising, synthesising]);
  // In the background.
  void logBrokenModels(settings.modelsDir, logger).catch((err: unknown) => logger.warn({ err }, 'models not listed'));
  const catalogue = createVoiceCatalogue(synthesis.voices(), { preferred: settings.ttsEngine });
  const warmingUp = new AbortController();
  opening.defer(() => warmingUp.abort());
  const opened = opening.move();
  return {
    ...{ recognition, synthesis, catalogue },
    warmUp: () => void warmUpSpeech(synthesis, { recipe: catalogue.usual.recipe, signal: warmingUp.signal }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** An engine thread that failed to start has nothing to close; its failure was reported to the caller. */
async function closeQuietly(starting: Promise<{ close(): Promise<void> }>): Promise<void> {
  const started = await starting.catch(() => null);
  await started?.close();
}
