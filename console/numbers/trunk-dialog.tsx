import { api, dataOf } from '../app/api.ts';
import { useAsOpened } from '../parts/changed-fields.ts';
import { FormDialog } from '../parts/form-dialog.tsx';
import { notifyDone } from '../parts/notify.ts';
import { trunkFormText as text } from '../text/trunks.ts';
import { refreshNumbers, type Trunk } from './queries.ts';
import { changesOf, newTrunkOf, type TrunkChanges } from './trunk-fields.ts';
import { TrunkForm } from './trunk-form.tsx';

interface TrunkDialogProps {
  /** Edits this trunk. Omitted: adds one. */
  trunk?: Trunk;
  isOpen: boolean;
  onClose: () => void;
  onSaved?: (trunk: Trunk) => void;
}

export function TrunkDialog({ trunk: current, isOpen, onClose, onSaved }: TrunkDialogProps) {
  const trunk = useAsOpened(current, isOpen);
  const save = async (fields: Record<string, string>) => {
    const saved =
      trunk === undefined
        ? await dataOf(api.POST('/dialer/trunks', { body: newTrunkOf(fields) }))
        : await change(trunk, changesOf(fields, trunk));
    await refreshNumbers();
    notifyDone(trunk === undefined ? text.added(saved.name) : text.saved(saved.name));
    onSaved?.(saved);
  };
  return (
    <FormDialog
      title={trunk === undefined ? text.addTitle : text.editTitle(trunk.name)}
      submitLabel={trunk === undefined ? text.submitAdd : text.submitEdit}
      size="lg"
      isOpen={isOpen}
      onClose={onClose}
      onSubmit={save}
    >
      <TrunkForm trunk={trunk} />
    </FormDialog>
  );
}

/** The server rejects a request without changes. */
function change(trunk: Trunk, changes: TrunkChanges): Trunk | Promise<Trunk> {
  if (Object.keys(changes).length === 0) return trunk;
  return dataOf(api.PATCH('/dialer/trunks/{id}', { params: { path: { id: trunk.id } }, body: changes }));
}
