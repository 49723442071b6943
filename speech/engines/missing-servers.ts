import type { EngineConfig } from './available-engines.ts';

interface PreferredEngines extends Pick<EngineConfig, 'sttEngine' | 'sttBaseUrl'> {
  ttsEngine: string;
  ttsBaseUrl: string | null;
}

/** Logs a preferred engine whose server is not configured. The other engines serve instead. */
export function logMissingServers(
  { sttEngine, sttBaseUrl, ttsEngine, ttsBaseUrl }: PreferredEngines,
  logger: { warn(fields: object, message: string): void },
): void {
  if (sttEngine === 'openai' && sttBaseUrl === null) {
    logger.warn({ missing: 'STT_BASE_URL' }, 'STT_ENGINE=openai has no effect without a server');
  }
  if (ttsEngine === 'openai' && ttsBaseUrl === null) {
    logger.warn({ missing: 'TTS_BASE_URL' }, 'TTS_ENGINE=openai has no effect without a server');
  }
}
