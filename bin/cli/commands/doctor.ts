import { type Config, ConfigError } from '../../../config.ts';
import { checkAddresses } from '../../../diagnosis/addresses.ts';
import { checkClock } from '../../../diagnosis/clock.ts';
import { checkDataFolder } from '../../../diagnosis/data-folder.ts';
import { checkDatabase, checkRedis } from '../../../diagnosis/database.ts';
import { checkDatagrams } from '../../../diagnosis/datagrams.ts';
import { type Finding, fail, ok } from '../../../diagnosis/finding.ts';
import { checkLanguage } from '../../../diagnosis/language.ts';
import { checkMediaEncryption } from '../../../diagnosis/media-encryption.ts';
import { checkMediaPriority } from '../../../diagnosis/media-priority.ts';
import { checkMemoryIndex } from '../../../diagnosis/memory-index.ts';
import { checkNumberPlan } from '../../../diagnosis/number-plan.ts';
import { checkObjects } from '../../../diagnosis/objects.ts';
import { checkRecognition } from '../../../diagnosis/recognition.ts';
import { checkRuntime, checkTools } from '../../../diagnosis/runtime.ts';
import { checkSipTls } from '../../../diagnosis/sip-tls.ts';
import { checkStoredSecrets } from '../../../diagnosis/stored-secrets.ts';
import { checkSynthesis } from '../../../diagnosis/synthesis.ts';
import { checkTrunks } from '../../../diagnosis/trunks.ts';
import { checkWebRtc } from '../../../diagnosis/webrtc.ts';
import { type Command, defineAction } from '../command.ts';
import { checkDrachtio } from '../doctor/drachtio.ts';
import { checkPorts } from '../doctor/ports.ts';
import { checkServer, findRunningServer } from '../doctor/server.ts';
import type { CommandHost } from '../host.ts';
import { readSettings } from '../settings.ts';
import type { Terminal } from '../terminal.ts';

export const doctorCommand: Command = {
  action: defineAction({
    summary: 'Check everything that the server needs, change nothing, and say how to fix problems.',
    async run({ host, terminal }) {
      const findings: Finding[] = [];
      for await (const finding of examine({ host, terminal })) {
        findings.push(finding);
        terminal.line(findingText(finding, terminal));
      }
      const count = (status: Finding['status']) => findings.filter((finding) => finding.status === status).length;
      const data = { ok: count('ok'), warn: count('warn'), fail: count('fail'), findings };
      if (data.fail > 0) {
        const message = `${data.fail} of ${findings.length} checks failed: each says what to do.`;
        return { data, failure: { code: 'UNHEALTHY', message } };
      }
      return { data, text: data.warn > 0 ? `\nIt works; ${data.warn} to look at.` : '\nAll is well.' };
    },
  }),
  notes: 'Exit code 1 when a check failed. Run it as the user that runs the server, with the same settings.',
};

/** In dependency order. */
async function* examine({ host, terminal }: { host: CommandHost; terminal: Terminal }): AsyncGenerator<Finding> {
  yield checkRuntime();
  const config = settingsOrFinding(host);
  if ('check' in config) {
    yield config;
    return;
  }
  yield ok('configuration', 'every setting is understood');
  yield checkNumberPlan(config);
  yield* await checkDataFolder(config);
  terminal.progress('objects ...');
  yield await checkObjects(config);
  terminal.progress('database ...');
  const { findings, sql } = await checkDatabase(config);
  try {
    yield* findings;
    yield* present(await checkStoredSecrets(config, sql));
    yield* present(await checkMemoryIndex(config, sql));
    yield* present(await checkRedis(config));
    yield await checkClock(sql);
    terminal.progress('network ...');
    const server = await findRunningServer(config);
    yield checkServer(server);
    yield* await checkPorts(config, server);
    yield* present(await checkSipTls(config));
    yield await checkDatagrams(config);
    yield* present(await checkMediaPriority());
    yield checkWebRtc();
    yield* await checkAddresses(config, sql);
    if (sql !== null) {
      yield* await checkTrunks(sql, { isRunning: server.kind === 'tandem' });
      yield* await checkMediaEncryption(sql);
    }
    yield* present(await checkDrachtio(config));
  } finally {
    await sql?.end({ timeout: 1 });
  }
  yield await checkTools();
  terminal.progress('speech ...');
  yield* await checkRecognition(config);
  yield* await checkSynthesis(config);
  terminal.progress('language model ...');
  yield* await checkLanguage(config);
}

function settingsOrFinding(host: CommandHost): Config | Finding {
  try {
    return readSettings(host);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return fail(
      'configuration',
      error.message,
      'Correct it, then run the doctor again. tandem serve --help lists all settings.',
    );
  }
}

function present(finding: Finding | null): Finding[] {
  return finding === null ? [] : [finding];
}

const MARKS = { ok: ['green', '✓'], warn: ['yellow', '!'], fail: ['red', '✗'] } as const;

export function findingText({ check, status, message, advice }: Finding, { paint }: Pick<Terminal, 'paint'>): string {
  const [colour, mark] = MARKS[status];
  const line = `${paint(colour, mark)} ${status.padEnd(5)}${check.padEnd(20)} ${message}`;
  return advice === null ? line : `${line}\n  ${' '.repeat(26)}-> ${advice}`;
}
