import { basename, dirname, join } from 'node:path';
import { findInstalledModels } from '../../../speech/engines/sherpa-onnx/installed-models.ts';
import { findSynthesisModels } from '../../../speech/engines/sherpa-onnx/installed-voices.ts';
import { isStreaming } from '../../../speech/engines/sherpa-onnx/model-folder.ts';
import { createSherpaEngine } from '../../../speech/engines/sherpa-onnx/sherpa-engine.ts';
import { createSherpaSynthesisEngine } from '../../../speech/engines/sherpa-onnx/sherpa-synthesis-engine.ts';
import { CATALOGUE, MODEL_KINDS, type ModelKind } from '../../../speech/models/catalogue.ts';
import { checkFiles, loadingProblems, speakingProblems } from '../../../speech/models/check-model.ts';
import type { DownloadProgress } from '../../../speech/models/download.ts';
import { fetchModel, wantedModel } from '../../../speech/models/fetch-model.ts';
import { readLockFile } from '../../../speech/models/lock-file.ts';
import { ModelError } from '../../../speech/models/model-error.ts';
import { type Command, CommandError, defineAction, UsageError } from '../command.ts';
import { readSettings } from '../settings.ts';
import { type Terminal, table } from '../terminal.ts';

const list = defineAction({
  summary: 'List installed speech models and well-known ones to fetch.',
  async run({ host, terminal }) {
    const { modelsDir } = readSettings(host);
    const models = await listModels(modelsDir);
    const paintStatus = { installed: 'green', broken: 'red', available: 'dim' } as const;
    const text = table(
      ['MODEL', 'FOR', 'LANGUAGES', 'LIVE', 'DOWNLOAD', 'STATUS'],
      models.map(({ name, kind, languages, live, download_mb, status, problem }) => [
        name,
        kind,
        status === 'broken' ? null : shortened(languages),
        live === null ? null : live ? 'yes' : 'no',
        download_mb === null ? null : `${download_mb} MB`,
        terminal.paint(paintStatus[status], problem === null ? status : `${status}: ${problem}`),
      ]),
      'No model is installed.',
    );
    return { data: { models_dir: modelsDir, models }, text: `${text}\n\nThey lie in ${modelsDir}.` };
  },
});

const fetch = defineAction({
  summary: 'Download a model, verify its checksum and unpack it. Resumes an interrupted download.',
  parameters: [
    { name: 'NAME|URL', about: 'name from tandem models list, or URL of a .tar.bz2, .tar.gz, .tar.xz or .tar' },
  ],
  options: {
    sha256: { value: 'HEX', about: 'expected SHA-256 of the archive' },
    for: { value: 'KIND', about: 'stt (the default), tts, punctuation or language-id' },
    name: { value: 'NAME', about: 'name of its folder (default: name of the archive)' },
  },
  async run({ host, values, arguments: [nameOrUrl = ''], terminal }) {
    const { modelsDir } = readSettings(host);
    const wanted = wantedModel(nameOrUrl, {
      ...(values.sha256 !== undefined && { sha256: checksumOf(values.sha256) }),
      ...(values.for !== undefined && { kind: kindOf(values.for) }),
      ...(values.name !== undefined && { name: values.name }),
    });
    if (wanted === null) {
      const message = `there is no model ${JSON.stringify(nameOrUrl)}: name one of tandem models list, or an address.`;
      throw new UsageError(message);
    }
    if (!/^[A-Za-z0-9][\w.-]{0,199}$/.test(wanted.name)) {
      throw new UsageError('--name takes letters, digits, dots and dashes');
    }
    const abort = new AbortController();
    const stop = () => abort.abort(new CommandError('INTERRUPTED', 'interrupted: fetch again to go on.'));
    host.once('SIGINT', stop);
    try {
      const fetched = await fetchModel(wanted, { modelsDir, onProgress: progressLine(terminal), signal: abort.signal });
      const { folder, sha256, bytes, files, wasVerified } = fetched;
      const data = { name: wanted.name, kind: wanted.kind, folder, sha256, bytes, files, verified: wasVerified };
      const trust = wasVerified
        ? 'Its checksum is right.'
        : `No checksum was given. tandem models check will compare with ${sha256}.`;
      terminal.progress('');
      return { data, text: `${wanted.name} is in ${folder} (${files} files).\n${trust}` };
    } catch (error) {
      throw inOneLine(error);
    } finally {
      host.off('SIGINT', stop);
    }
  },
});

const check = defineAction({
  summary: 'Verify the files of installed models, then load and run each in its own process.',
  parameters: [{ name: 'NAME', about: 'model to check (default: all)', optional: true }],
  async run({ host, arguments: [only], terminal }) {
    const { modelsDir } = readSettings(host);
    const checked = await checkModels(modelsDir, { only: only ?? null, terminal });
    if (checked.length === 0 && only !== undefined) {
      throw new CommandError('MODEL_NOT_FOUND', `no model ${JSON.stringify(only)} is in ${modelsDir}.`);
    }
    const data = { models: checked };
    const broken = checked.filter(({ problems }) => problems.length > 0);
    if (broken.length > 0) {
      const message = `${broken.length} of ${checked.length} models cannot be used as they are.`;
      return { data, failure: { code: 'BROKEN_MODELS', message } };
    }
    return { data, text: checked.length === 0 ? `No model is in ${modelsDir}.` : 'All is well.' };
  },
});

export const modelsCommand: Command = {
  actions: { list, fetch, check },
  notes: 'Models are stored in MODELS_DIR. docs/speech-models.md describes their folders and uses.',
};

interface ListedModel {
  name: string;
  kind: ModelKind;
  languages: readonly string[];
  /** Whether it supports live recognition; null if it is not a recognition model. */
  live: boolean | null;
  download_mb: number | null;
  status: 'installed' | 'broken' | 'available';
  problem: string | null;
}

async function listModels(modelsDir: string): Promise<ListedModel[]> {
  const installed = await findInstalledModels(modelsDir);
  const voices = await findSynthesisModels(modelsDir);
  const catalogued = new Map(CATALOGUE.map((model) => [`${model.kind}/${model.name}`, model]));
  const common = { download_mb: null, problem: null, status: 'installed' as const };
  const found: ListedModel[] = [
    ...installed.recognition.map(({ model }) => ({
      ...{ name: model.name, kind: 'stt' as const, languages: model.languages, live: isStreaming(model) },
      ...common,
    })),
    ...installed.punctuation.map(({ model, languages }) => ({
      ...{ name: basename(dirname(model)), kind: 'punctuation' as const, languages, live: null },
      ...common,
    })),
    ...(installed.languageIdentification === null ? [] : [installed.languageIdentification]).map(({ encoder }) => ({
      ...{ name: basename(dirname(encoder)), kind: 'language-id' as const, languages: [], live: null },
      ...common,
    })),
    ...voices.models.map(({ model: { name, speakers } }) => ({
      ...{ name, kind: 'tts' as const, languages: [...new Set(speakers.flatMap(({ languages }) => languages))] },
      ...{ live: null, ...common },
    })),
    ...[...installed.problems, ...voices.problems].map(({ folder, problem }) => ({
      ...{ name: basename(folder), kind: kindOf(basename(dirname(folder))), languages: [], live: null },
      ...{ download_mb: null, status: 'broken' as const, problem },
    })),
  ];
  for (const { kind, name } of found) catalogued.delete(`${kind}/${name}`);
  const available = [...catalogued.values()].map(({ name, kind, languages, type, downloadMb }) => ({
    ...{ name, kind, languages, live: kind === 'stt' && type !== null ? isStreaming({ type }) : null },
    ...{ download_mb: downloadMb, status: 'available' as const, problem: null },
  }));
  return [...found, ...available];
}

interface CheckedModel {
  name: string;
  kind: ModelKind;
  problems: string[];
}

async function checkModels(
  modelsDir: string,
  { only, terminal }: { only: string | null; terminal: Terminal },
): Promise<CheckedModel[]> {
  const lock = await readLockFile(modelsDir).catch((error: unknown) => {
    throw inOneLine(error);
  });
  const listed = (await listModels(modelsDir)).filter(({ status }) => status !== 'available');
  const present = listed.map(({ kind, name }) => `${kind}/${name}`);
  const gone = Object.keys(lock).filter((key) => !present.includes(key));
  const engine = createSherpaEngine({ modelsDir, processes: 1 });
  const synthesis = createSherpaSynthesisEngine({ modelsDir, processes: 1 });
  const checked: CheckedModel[] = [];
  for (const { name, kind, problem } of listed) {
    if (only !== null && name !== only) continue;
    terminal.progress(`${name} ...`);
    const locked = lock[`${kind}/${name}`];
    const problems = locked === undefined ? [] : await checkFiles(join(modelsDir, kind, name), locked);
    if (problem !== null) problems.push(problem);
    if (kind === 'stt' && problems.length === 0) problems.push(...(await loadingProblems(engine, name)));
    if (kind === 'tts' && problems.length === 0) problems.push(...(await speakingProblems(synthesis, name)));
    checked.push({ name, kind, problems });
    printCheck({ name, kind, problems }, { terminal, isLocked: locked !== undefined });
  }
  for (const key of gone) {
    const [kind, name] = [kindOf(dirname(key)), basename(key)];
    if (only !== null && name !== only) continue;
    checked.push({ name, kind, problems: ['it was fetched, and is gone'] });
    printCheck(checked.at(-1)!, { terminal, isLocked: true });
  }
  return checked;
}

function printCheck(
  { name, problems }: CheckedModel,
  { terminal, isLocked }: { terminal: Terminal; isLocked: boolean },
): void {
  const { paint } = terminal;
  const note = isLocked ? '' : paint('dim', ' (not fetched by us: its files are compared with nothing)');
  if (problems.length === 0) terminal.line(`${paint('green', '✓')} ${name}${note}`);
  else terminal.line([`${paint('red', '✗')} ${name}`, ...problems.map((problem) => `  ${problem}`)].join('\n'));
}

const BAR_WIDTH = 30;
const PROGRESS_EVERY_MS = 100;

function progressLine(terminal: Terminal): (progress: DownloadProgress) => void {
  let printedAt = 0;
  return ({ bytes, totalBytes }) => {
    const now = Date.now();
    if (bytes !== totalBytes && now - printedAt < PROGRESS_EVERY_MS) return;
    printedAt = now;
    const megabytes = (count: number) => `${(count / 1e6).toFixed(1)} MB`;
    if (totalBytes === null || totalBytes === 0) return terminal.progress(megabytes(bytes));
    const share = bytes / totalBytes;
    const filled = Math.round(share * BAR_WIDTH);
    const bar = `${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}`;
    terminal.progress(`[${bar}] ${Math.floor(share * 100)} % of ${megabytes(totalBytes)}`);
  };
}

function shortened(languages: readonly string[]): string {
  if (languages.length === 0) return 'about 100';
  return languages.length <= 5
    ? languages.join(' ')
    : `${languages.slice(0, 4).join(' ')} and ${languages.length - 4} more`;
}

function checksumOf(text: string): string {
  if (!/^[0-9a-f]{64}$/i.test(text)) throw new UsageError('--sha256 takes 64 hexadecimal digits');
  return text.toLowerCase();
}

function kindOf(text: string): ModelKind {
  const kind = MODEL_KINDS.find((known) => known === text);
  if (kind === undefined) throw new UsageError(`--for takes ${MODEL_KINDS.join(', ')}, not ${JSON.stringify(text)}`);
  return kind;
}

function inOneLine(error: unknown): unknown {
  return error instanceof ModelError ? new CommandError(error.code, error.message, { cause: error }) : error;
}
