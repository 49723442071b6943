import type { Config } from '../config.ts';
import type { LanguageModels } from '../language/llm.ts';
import { LATE, within } from '../runtime/waiting.ts';
import type { SpeechEngines } from '../speech/open-speech-engines.ts';
import type { Sql } from '../storage/database.ts';
import { checkAddresses } from './addresses.ts';
import { compareClock } from './clock.ts';
import { checkDataFolder } from './data-folder.ts';
import { checkRedis, describeServer } from './database.ts';
import { checkDatagrams } from './datagrams.ts';
import { type Finding, fail, reasonOf } from './finding.ts';
import { checkRunningLanguage } from './language.ts';
import { checkMediaEncryption } from './media-encryption.ts';
import { checkMediaPriority } from './media-priority.ts';
import { checkMemoryIndex } from './memory-index.ts';
import { checkNumberPlan } from './number-plan.ts';
import { checkObjects } from './objects.ts';
import { checkRunningRecognition } from './recognition.ts';
import { checkRuntime, checkTools } from './runtime.ts';
import { checkSipTls } from './sip-tls.ts';
import { checkStoredSecrets } from './stored-secrets.ts';
import { checkRunningSynthesis } from './synthesis.ts';
import { checkTrunks } from './trunks.ts';
import { checkWebRtc } from './webrtc.ts';

export interface RunningParts {
  sql: Sql;
  engines: Pick<SpeechEngines, 'recognition' | 'synthesis'>;
  models: Pick<LanguageModels, 'list'>;
  /** Timeout of each check. Default 10 000. */
  timeoutMs?: number;
}

/**
 * Checks a running server with its open parts. Skips ports, because the server itself uses them. Never rejects: a check
 * that cannot run has failed.
 */
export async function diagnoseRunning(config: Config, parts: RunningParts): Promise<Finding[]> {
  const { sql, engines, models, timeoutMs = 10_000 } = parts;
  const checks: [name: string, check: () => Found | Promise<Found>][] = [
    ['runtime', checkRuntime],
    ['NUMBER_PLAN', () => checkNumberPlan(config)],
    ['data folder', () => checkDataFolder(config)],
    ['objects', () => checkObjects(config)],
    ['database', () => describeServer(sql)],
    ['stored secrets', () => checkStoredSecrets(config, sql)],
    ['memory index', () => checkMemoryIndex(config, sql)],
    ['Redis', () => checkRedis(config)],
    ['clock', () => compareClock(sql)],
    ['SIP over TLS', () => checkSipTls(config)],
    ['media sockets', () => checkDatagrams(config)],
    ['media priority', checkMediaPriority],
    ['WebRTC', checkWebRtc],
    ['addresses', () => checkAddresses(config, sql)],
    ['trunks', () => checkTrunks(sql, { isRunning: true })],
    ['media encryption', () => checkMediaEncryption(sql)],
    ['optional programs', checkTools],
    ['transcription', () => checkRunningRecognition(config, engines.recognition)],
    ['speech synthesis', () => checkRunningSynthesis(config, engines.synthesis)],
    ['language model', () => checkRunningLanguage(config, models)],
  ];
  const found = await Promise.all(
    checks.map(async ([name, check]) => {
      try {
        const result = await within((async () => await check())(), { ms: timeoutMs });
        if (result !== LATE) return [result].flat().filter((finding) => finding !== null);
        return [fail(name, `The check took longer than ${timeoutMs / 1_000} s.`, 'Look at the log of the server.')];
      } catch (error) {
        return [fail(name, `It could not be checked: ${reasonOf(error)}`, 'Look at the log of the server.')];
      }
    }),
  );
  return found.flat();
}

type Found = Finding | null | readonly Finding[];
