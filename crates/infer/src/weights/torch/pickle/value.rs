use super::Global;

/// The number of a value in its [`Pickle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Id(u32);

/// What a pickle builds.
#[derive(Debug)]
pub(in super::super) enum Value {
    None,
    Bool(bool),
    /// The longest number of `torch.save` has 80 bits.
    Int(i128),
    /// No tensor needs the number.
    Float,
    Text(String),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    /// A `dict`, or a `collections.OrderedDict` if `ordered`.
    Dict {
        items: Vec<(Id, Id)>,
        ordered: bool,
    },
    Global(Global),
    /// A call that is not made. The arguments are a tuple.
    Call {
        function: Global,
        arguments: Id,
    },
    /// What the writer keeps outside the pickle: in a file of `torch.save`, a storage.
    Persistent(Id),
}

/// All values of a pickle.
#[derive(Debug, Default)]
pub(in super::super) struct Pickle {
    values: Vec<Value>,
    root: Option<Id>,
}

impl Pickle {
    pub(in super::super) fn get(&self, id: Id) -> &Value {
        &self.values[id.0 as usize] // only `push` makes an id
    }

    pub(super) fn get_mut(&mut self, id: Id) -> &mut Value {
        &mut self.values[id.0 as usize]
    }

    /// What the pickle is of.
    pub(in super::super) fn root(&self) -> &Value {
        self.root.map_or(&Value::None, |root| self.get(root))
    }

    pub(in super::super) fn values(&self) -> &[Value] {
        &self.values
    }

    pub(in super::super) fn text(&self, id: Id) -> Option<&str> {
        match self.get(id) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(in super::super) fn tuple(&self, id: Id) -> Option<&[Id]> {
        match self.get(id) {
            Value::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// A number that counts something.
    pub(in super::super) fn count(&self, id: Id) -> Option<u64> {
        match self.get(id) {
            Value::Int(number) => (*number).try_into().ok(),
            _ => None,
        }
    }

    /// The value of a key of a dictionary.
    pub(in super::super) fn item(&self, dict: &Value, key: &str) -> Option<&Value> {
        let Value::Dict { items, .. } = dict else {
            return None;
        };
        let item = items.iter().find(|(k, _)| self.text(*k) == Some(key));
        item.map(|(_, value)| self.get(*value))
    }

    /// Adds a value. There are never as many as 2^32: see `MOST_VALUES`.
    pub(super) fn push(&mut self, value: Value) -> Id {
        self.values.push(value);
        Id(self.values.len() as u32 - 1)
    }

    pub(super) fn end(&mut self, root: Id) {
        self.root = Some(root);
    }
}
