import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import openapiTS, { astToString } from 'openapi-typescript';

const FOLDER = import.meta.dirname;

/** Generates `schema.ts`: the types of every operation in `openapi.json`. */
export async function schemaOf(document: string): Promise<string> {
  const nodes = await openapiTS(document, { alphabetize: true, arrayLength: false, emptyObjectsUnknown: true });
  return `/** Generated from openapi.json by \`npm run client:build\`. Do not edit. */\n\n${astToString(nodes)}`;
}

export async function readOpenApi(): Promise<string> {
  return await readFile(join(FOLDER, '../openapi.json'), 'utf8');
}

if (import.meta.main) {
  await writeFile(join(FOLDER, 'schema.ts'), await schemaOf(await readOpenApi()));
}
