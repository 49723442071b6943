import { queryClient } from './query-client.ts';
import { enterWorkspace } from './workspace.ts';

/** Switches to another workspace, also one that was just created or joined. */
export async function switchWorkspace(id: string): Promise<void> {
  await queryClient.refetchQueries({ queryKey: ['session'] });
  enterWorkspace(id);
}
