import { findInstalledModels } from '../engines/sherpa-onnx/installed-models.ts';
import { findSynthesisModels } from '../engines/sherpa-onnx/installed-voices.ts';

/** Logs model folders that cannot be used, with the reason. Their engine works without them. */
export async function logBrokenModels(
  modelsDir: string,
  logger: { warn(fields: object, message: string): void },
): Promise<void> {
  const found = await Promise.all([findInstalledModels(modelsDir), findSynthesisModels(modelsDir)]);
  for (const { folder, problem } of found.flatMap(({ problems }) => problems)) {
    logger.warn({ folder, problem }, 'model cannot be used');
  }
}
