import React, { useState } from "react";
import type { Order } from "./order";

interface Props {
  order: Order;
  onClose?: (id: number) => void;
}

/** Shows one order. */
export function OrderView({ order, onClose }: Props): JSX.Element {
  const [open, setOpen] = useState<boolean>(false);
  return (
    <div className="order">
      {order.lines.map((line) => (
        <Line key={line} text={line} />
      ))}
      <button onClick={() => onClose?.(order.id)}>close</button>
    </div>
  );
}

export type State = "open" | "closed";
