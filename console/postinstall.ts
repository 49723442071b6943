/** npm runs this after installing. Without development packages there is no builder. */
try {
  import.meta.resolve('vite');
} catch {
  process.exit(0);
}
try {
  const { buildConsole } = await import('./build.ts');
  await buildConsole();
} catch (error) {
  console.log(`The console could not be built: ${(error as Error).message}. Run: npm run console:build`);
}
