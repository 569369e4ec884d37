use std::collections::HashMap;
use std::io::Read;
use std::ops::RangeInclusive;

use super::super::super::fault::{Fault, shown};
use super::{Global, Id, Input, Pickle, Value};

/// The most values that a pickle may build, and the most that it may have on its stack or in its memo.
const MOST_VALUES: usize = 1 << 20;
/// Python writes these. Older ones are text, and torch does not use them.
const PROTOCOLS: RangeInclusive<u8> = 2..=5;

/// The stack machine of pickles. The opcodes are those that `torch.save` writes for tensors; see Python's
/// `pickletools` for what each of them does.
#[derive(Default)]
struct Machine {
    pickle: Pickle,
    stack: Vec<Id>,
    /// Where on the stack the items of a container begin.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl Pickle {
    /// Reads one pickle. The next one, if any, begins where it ends.
    pub(in super::super) fn read(input: &mut Input<impl Read>) -> Result<Self, Fault> {
        let mut machine = Machine::default();
        if input.byte()? != 0x80 {
            return Fault::damaged("not a pickle");
        }
        machine.step(0x80, input)?;
        loop {
            match input.byte()? {
                b'.' => break, // STOP
                opcode => machine.step(opcode, input)?,
            }
        }
        let root = machine.pop()?;
        machine.pickle.end(root);
        Ok(machine.pickle)
    }
}

impl Machine {
    fn step(&mut self, opcode: u8, input: &mut Input<impl Read>) -> Result<(), Fault> {
        match opcode {
            // PROTO, FRAME
            0x80 => match input.byte()? {
                version if PROTOCOLS.contains(&version) => Ok(()),
                version => Fault::refused(format!("a pickle of protocol {version}")),
            },
            0x95 => {
                let length = u64::from_le_bytes(input.bytes()?);
                input.require(length)
            }
            // NONE, NEWTRUE, NEWFALSE
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            // BININT, BININT1, BININT2, LONG1, BINFLOAT
            b'J' => self.push(Value::Int(i32::from_le_bytes(input.bytes()?).into())),
            b'K' => self.push(Value::Int(input.byte()?.into())),
            b'M' => self.push(Value::Int(u16::from_le_bytes(input.bytes()?).into())),
            0x8a => {
                let length = input.byte()?;
                self.push(Value::Int(input.long(length)?))
            }
            b'G' => {
                input.bytes::<8>()?;
                self.push(Value::Float)
            }
            // SHORT_BINUNICODE, BINUNICODE, BINUNICODE8
            0x8c => {
                let length = input.byte()?;
                self.push(Value::Text(input.text(length.into())?))
            }
            b'X' => {
                let length = u32::from_le_bytes(input.bytes()?);
                self.push(Value::Text(input.text(length.into())?))
            }
            0x8d => {
                let length = u64::from_le_bytes(input.bytes()?);
                self.push(Value::Text(input.text(length)?))
            }
            // MARK, EMPTY_TUPLE, TUPLE, TUPLE1 to TUPLE3, EMPTY_LIST, EMPTY_DICT
            b'(' => self.mark(),
            b')' => self.push(Value::Tuple(Vec::new())),
            b't' => {
                let items = self.pop_mark()?;
                self.push(Value::Tuple(items))
            }
            0x85..=0x87 => {
                let items = self.pop_many(usize::from(opcode - 0x84))?;
                self.push(Value::Tuple(items))
            }
            b']' => self.push(Value::List(Vec::new())),
            b'}' => self.push(Value::Dict {
                items: Vec::new(),
                ordered: false,
            }),
            // APPEND, APPENDS, SETITEM, SETITEMS
            b'a' => self.pop_many(1).and_then(|items| self.extend(&items)),
            b'e' => self.pop_mark().and_then(|items| self.extend(&items)),
            b's' => self.pop_many(2).and_then(|items| self.set(&items)),
            b'u' => self.pop_mark().and_then(|items| self.set(&items)),
            // BINPUT, LONG_BINPUT, MEMOIZE, BINGET, LONG_BINGET
            b'q' => {
                let key = input.byte()?;
                self.put(key.into())
            }
            b'r' => {
                let key = u32::from_le_bytes(input.bytes()?);
                self.put(key)
            }
            0x94 => self.put(self.memo.len() as u32),
            b'h' => {
                let key = input.byte()?;
                self.recall(key.into())
            }
            b'j' => {
                let key = u32::from_le_bytes(input.bytes()?);
                self.recall(key)
            }
            // GLOBAL, STACK_GLOBAL, REDUCE, BUILD, BINPERSID
            b'c' => {
                let (module, name) = (input.line()?, input.line()?);
                self.global(&module, &name)
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (module, name) = (self.pickle.text(module), self.pickle.text(name));
                match (module, name) {
                    (Some(module), Some(name)) => {
                        let (module, name) = (module.to_string(), name.to_string());
                        self.global(&module, &name)
                    }
                    _ => Fault::damaged("a function in its pickle has no name"),
                }
            }
            b'R' => self.call(),
            b'b' => self.build(),
            b'Q' => {
                let id = self.pop()?;
                self.push(Value::Persistent(id))
            }
            // INST: a global and its call in one.
            b'i' => {
                let (module, name) = (input.line()?, input.line()?);
                refuse_call(&module, &name)
            }
            b'o' => refuse_object("OBJ"),
            0x81 => refuse_object("NEWOBJ"),
            0x92 => refuse_object("NEWOBJ_EX"),
            0x82..=0x84 => refuse_object("EXT"),
            _ => Fault::refused(format!(
                "opcode {opcode:#04x} in its pickle; only tensors are read"
            )),
        }
    }

    fn push(&mut self, value: Value) -> Result<(), Fault> {
        if self.pickle.values().len() == MOST_VALUES {
            return Fault::refused(format!("more than {MOST_VALUES} values in its pickle"));
        }
        let id = self.pickle.push(value);
        self.push_id(id)
    }

    fn push_id(&mut self, id: Id) -> Result<(), Fault> {
        if self.stack.len() == MOST_VALUES {
            return Fault::refused(format!(
                "more than {MOST_VALUES} values on a pickle's stack"
            ));
        }
        self.stack.push(id);
        Ok(())
    }

    fn mark(&mut self) -> Result<(), Fault> {
        if self.marks.len() == MOST_VALUES {
            return Fault::refused(format!("more than {MOST_VALUES} marks on a pickle's stack"));
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// How many values are on the stack above the last mark, which nothing but `pop_mark` reaches below.
    fn above_mark(&self) -> usize {
        self.stack.len() - self.marks.last().copied().unwrap_or(0)
    }

    fn pop_many(&mut self, count: usize) -> Result<Vec<Id>, Fault> {
        if count > self.above_mark() {
            return Fault::damaged("its pickle takes from an empty stack");
        }
        Ok(self.stack.split_off(self.stack.len() - count))
    }

    fn pop(&mut self) -> Result<Id, Fault> {
        let popped = (self.above_mark() > 0).then(|| self.stack.pop()).flatten();
        popped.ok_or_else(|| Fault::Damaged("its pickle takes from an empty stack".into()))
    }

    fn pop_mark(&mut self) -> Result<Vec<Id>, Fault> {
        let items = self.above_mark();
        match self.marks.pop() {
            Some(_) => Ok(self.stack.split_off(self.stack.len() - items)),
            None => Fault::damaged("its pickle takes from an empty stack"),
        }
    }

    /// The value on top of the stack, which stays there.
    fn top(&self) -> Result<Id, Fault> {
        let top = (self.above_mark() > 0).then(|| self.stack.last().copied());
        let top = top.flatten();
        top.ok_or_else(|| Fault::Damaged("its pickle takes from an empty stack".into()))
    }

    fn extend(&mut self, new: &[Id]) -> Result<(), Fault> {
        let top = self.top()?;
        match self.pickle.get_mut(top) {
            Value::List(items) => items.extend(new),
            _ => return Fault::damaged("its pickle appends to what is not a list"),
        }
        Ok(())
    }

    fn set(&mut self, new: &[Id]) -> Result<(), Fault> {
        let top = self.top()?;
        let (pairs, rest) = new.as_chunks::<2>();
        match self.pickle.get_mut(top) {
            Value::Dict { items, .. } if rest.is_empty() => {
                items.extend(pairs.iter().map(|[key, value]| (*key, *value)));
            }
            _ => return Fault::damaged("its pickle sets items of what is not a dictionary"),
        }
        Ok(())
    }

    fn put(&mut self, key: u32) -> Result<(), Fault> {
        if self.memo.len() == MOST_VALUES {
            return Fault::refused(format!("more than {MOST_VALUES} values in a pickle's memo"));
        }
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u32) -> Result<(), Fault> {
        match self.memo.get(&key) {
            Some(id) => self.push_id(*id),
            None => Fault::damaged(format!(
                "its pickle recalls value {key}, which it has not stored"
            )),
        }
    }

    fn global(&mut self, module: &str, name: &str) -> Result<(), Fault> {
        match Global::named(module, name) {
            Some(global) => self.push(Value::Global(global)),
            None => refuse_call(module, name),
        }
    }

    /// Keeps a call of an accepted function. That of an `OrderedDict` is an empty one.
    fn call(&mut self) -> Result<(), Fault> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let Some(items) = self.pickle.tuple(arguments) else {
            return Fault::damaged("its pickle calls a function without a tuple of arguments");
        };
        match *self.pickle.get(function) {
            Value::Global(Global::OrderedDict) if items.is_empty() => self.push(Value::Dict {
                items: Vec::new(),
                ordered: true,
            }),
            Value::Global(function @ (Global::Tensor(_) | Global::Parameter)) => {
                self.push(Value::Call {
                    function,
                    arguments,
                })
            }
            _ => Fault::refused(
                "its pickle calls what is not a function of tensors; only tensors are read",
            ),
        }
    }

    /// Sets attributes. Those of an `OrderedDict`, in state dicts the versions of modules, are ignored.
    fn build(&mut self) -> Result<(), Fault> {
        self.pop()?;
        let object = self.top()?;
        match self.pickle.get(object) {
            Value::Dict { ordered: true, .. } => Ok(()),
            _ => refuse_object("BUILD"),
        }
    }
}

fn refuse_call(module: &str, name: &str) -> Result<(), Fault> {
    Fault::refused(format!(
        "the pickle calls `{}`; only tensors are read",
        shown(&format!("{module}.{name}"))
    ))
}

fn refuse_object(opcode: &str) -> Result<(), Fault> {
    Fault::refused(format!(
        "the pickle builds an object ({opcode}); only tensors are read"
    ))
}
